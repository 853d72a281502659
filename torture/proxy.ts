/** A TCP road of our own that can freeze, be cut, and close one way only. */
import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Server, type Socket } from 'node:net';

interface Pair {
  readonly near: Socket;
  readonly far: Socket;
}

export class Proxy {
  readonly #server: Server;
  readonly #pairs = new Set<Pair>();
  #frozen = false;

  private constructor(target: number) {
    this.#server = createServer({ allowHalfOpen: true }, (near) => {
      const far = connect({ port: target, host: '127.0.0.1', allowHalfOpen: true });
      const pair = { near, far };
      this.#pairs.add(pair);
      const end = () => {
        near.destroy();
        far.destroy();
        this.#pairs.delete(pair);
      };
      near.on('error', end).on('close', end).pipe(far);
      far.on('error', end).on('close', end).pipe(near);
      if (this.#frozen) hold(pair);
    });
  }

  static async to(port: number): Promise<Proxy> {
    const proxy = new Proxy(port);
    proxy.#server.listen(0, '127.0.0.1');
    await once(proxy.#server, 'listening');
    return proxy;
  }

  get port(): number {
    return (this.#server.address() as AddressInfo).port;
  }

  /** Every connection ends with a reset. */
  reset(): void {
    for (const { near, far } of this.#pairs) {
      near.resetAndDestroy();
      far.resetAndDestroy();
    }
  }

  /** One side is told that the other has nothing more to say; the other way stays open. */
  halfClose(): void {
    for (const { near } of this.#pairs) near.end();
  }

  /** Nothing passes, nothing is closed; new connections are taken and get no answer. */
  freeze(): void {
    this.#frozen = true;
    for (const pair of this.#pairs) hold(pair);
  }

  thaw(): void {
    this.#frozen = false;
    for (const { near, far } of this.#pairs) {
      near.pipe(far);
      far.pipe(near);
    }
  }

  close(): void {
    this.reset();
    this.#server.close();
  }
}

function hold({ near, far }: Pair): void {
  near.unpipe(far);
  far.unpipe(near);
  near.pause();
  far.pause();
}
