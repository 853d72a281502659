/** Socket Mode: hands out addresses, keeps the connections, sends envelopes and waits for their acknowledgement. */
import { randomBytes, randomUUID } from 'node:crypto';
import type { IncomingMessage, Server } from 'node:http';
import type { Duplex } from 'node:stream';
import { WebSocketServer, type WebSocket } from 'ws';
import { asObj, asText, parseJson, type Obj } from './json.ts';
import { post, type RequestUrl } from './request-url.ts';

/** Slack shows the person an error when the app has not acknowledged by then. */
export const ackLimitMs = 3_000;
/** Slack pings often; the client gives up on a socket after 30 s without one. */
const pingEveryMs = 5_000;
const maxConnections = 10;
/** Slack warns about ten seconds ahead. */
const closeAfterMs = 10_000;

export type Ack =
  | { readonly outcome: 'acked'; readonly payload: Obj; readonly tookMs: number }
  | { readonly outcome: 'operation_timeout' | 'dispatch_failed' };

export interface DeliverOptions {
  readonly retryAttempt?: number;
  readonly twice?: boolean;
}

export class Sockets {
  readonly #server = new WebSocketServer({ noServer: true });
  readonly #tickets = new Set<string>();
  readonly #open = new Set<WebSocket>();
  /** Asked to leave: used only while there is no other. */
  readonly #retiring = new WeakSet<WebSocket>();
  readonly #waiting = new Map<string, (payload: Obj) => void>();
  readonly #appId: string;
  readonly #onCount: (open: number) => void;
  readonly #pinger: NodeJS.Timeout;
  /** Where set, the app has no Socket Mode: everything is posted there instead. */
  requestUrl: RequestUrl | null = null;
  /** While true `apps.connections.open` fails, as in an outage. */
  refusing = false;
  /** While true nothing is sent or answered, yet the connection stays up: a deaf socket. */
  #frozen = false;
  #turn = 0;

  constructor(appId: string, onCount: (open: number) => void) {
    this.#appId = appId;
    this.#onCount = onCount;
    this.#pinger = setInterval(() => {
      if (!this.#frozen) for (const socket of this.#open) socket.ping(String(Date.now()));
    }, pingEveryMs);
    this.#pinger.unref();
  }

  get count(): number {
    return this.#open.size;
  }

  ticket(): string {
    const ticket = randomBytes(12).toString('hex');
    this.#tickets.add(ticket);
    return ticket;
  }

  attach(server: Server): void {
    server.on('upgrade', (request: IncomingMessage, socket: Duplex, head: Buffer) => {
      const url = new URL(request.url ?? '/', 'http://localhost');
      const ticket = url.searchParams.get('ticket') ?? '';
      // A ticket opens one connection; more than ten connections Slack does not allow.
      if (url.pathname !== '/link' || !this.#tickets.delete(ticket) || this.#open.size >= maxConnections) {
        socket.end('HTTP/1.1 403 Forbidden\r\n\r\n');
        return;
      }
      this.#server.handleUpgrade(request, socket, head, (ws) => {
        this.#welcome(ws);
      });
    });
  }

  #welcome(ws: WebSocket): void {
    this.#open.add(ws);
    ws.on('message', (data: Buffer) => {
      this.#received(data.toString('utf8'));
    });
    ws.on('error', () => {
      ws.terminate();
    });
    ws.on('close', () => {
      this.#open.delete(ws);
      this.#onCount(this.#open.size);
    });
    ws.send(
      JSON.stringify({
        type: 'hello',
        num_connections: this.#open.size,
        debug_info: { host: 'local-slack', approximate_connection_time: 18_060 },
        connection_info: { app_id: this.#appId },
      }),
    );
    this.#onCount(this.#open.size);
  }

  #received(text: string): void {
    const message = asObj(parseJson(text));
    const id = asText(message['envelope_id']);
    this.#waiting.get(id)?.(asObj(message['payload']));
  }

  /** Sends one envelope to one of the connections and waits up to three seconds for the acknowledgement. */
  async deliver(type: string, payload: Obj, options: DeliverOptions = {}): Promise<Ack> {
    if (this.requestUrl !== null) return post(this.requestUrl, type, payload, options);
    if (this.#open.size === 0) return { outcome: 'dispatch_failed' };
    const startedMs = Date.now();
    const id = randomUUID();
    const acked = new Promise<Obj | undefined>((resolve) => {
      const timer = setTimeout(() => {
        resolve(undefined);
      }, ackLimitMs);
      this.#waiting.set(id, (answer) => {
        clearTimeout(timer);
        resolve(answer);
      });
    });
    this.#send(id, type, payload, options.retryAttempt);
    if (options.twice === true) this.#send(randomUUID(), type, payload, options.retryAttempt);
    const answer = await acked;
    this.#waiting.delete(id);
    if (answer === undefined) return { outcome: 'operation_timeout' };
    return { outcome: 'acked', payload: answer, tookMs: Date.now() - startedMs };
  }

  #send(id: string, type: string, payload: Obj, retryAttempt?: number): void {
    if (this.#frozen) return;
    const staying = [...this.#open].filter((socket) => !this.#retiring.has(socket));
    const sockets = staying.length > 0 ? staying : [...this.#open];
    const socket = sockets[this.#turn++ % sockets.length];
    const retry =
      retryAttempt === undefined
        ? {}
        : { retry_attempt: retryAttempt, retry_reason: retryAttempt > 0 ? 'timeout' : '' };
    socket?.send(
      JSON.stringify({ envelope_id: id, type, payload, accepts_response_payload: type !== 'events_api', ...retry }),
    );
  }

  /** Slack's planned rotation: it asks the client to reconnect, and closes some time later. All at once, or only the oldest. */
  refresh(which: 'all' | 'oldest' = 'all', reason: 'refresh_requested' | 'warning' = 'refresh_requested'): void {
    const asked = which === 'all' ? [...this.#open] : [...this.#open].slice(0, 1);
    for (const socket of asked) {
      socket.send(JSON.stringify({ type: 'disconnect', reason }));
      this.#retiring.add(socket);
      setTimeout(() => {
        socket.close(1000);
      }, closeAfterMs).unref();
    }
  }

  /** The cable is pulled: no closing handshake. */
  drop(): void {
    for (const socket of this.#open) socket.terminate();
  }

  freeze(frozen: boolean): void {
    this.#frozen = frozen;
    for (const socket of this.#open) {
      if (frozen) socket.pause();
      else socket.resume();
    }
  }

  close(): void {
    clearInterval(this.#pinger);
    for (const socket of this.#open) socket.close(1000);
    this.#server.close();
  }
}
