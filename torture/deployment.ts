/** A team's deployment: gateway and workers as processes, a real Redis, roads that can break, paper boxes, people in Slack. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { buttonLabels, messageText } from '../src/demo/transcript.ts';
import type { Store } from '../src/requests/store.ts';
import { openRedisStore } from '../src/requests/store-redis.ts';
import { type LocalSlack, startLocalSlack } from '../src/standin/local-slack.ts';
import type { Message } from '../src/standin/model.ts';
import { systemClock } from '../src/system-clock.ts';
import { paperBoxes, type PaperBoxes } from '../test/ops/paper-boxes.ts';
import { serveFolder, type Folder, type Serving } from '../test/ops/processes.ts';
import { redisServer, type RedisServer } from '../test/requests/servers.ts';
import { Proxy } from './proxy.ts';

export const channel = 'C0GPU';
export const hosts = Array.from({ length: 6 }, (_, n) => `gpu-box-${n + 1}`);
export const places = ['gateway', 'worker', 'worker'] as const;

export const isCard = (m: Message): boolean =>
  m.botId !== undefined && buttonLabels(m).some((label) => label.startsWith('Approve'));

interface World {
  readonly folder: Folder;
  readonly boxes: PaperBoxes;
  readonly redis: RedisServer;
  readonly store: Store;
  readonly slack: LocalSlack;
  readonly redisRoad: Proxy;
  readonly sshRoad: Proxy;
}

export class Deployment {
  readonly sitting: (Serving | undefined)[] = [];
  readonly world: World;

  private constructor(world: World) {
    this.world = world;
  }

  static async open(): Promise<Deployment> {
    const folder = serveFolder();
    const [boxes, redis] = await Promise.all([paperBoxes(60), redisServer()]);
    const [redisRoad, sshRoad] = await Promise.all([Proxy.to(redis.port), Proxy.to(boxes.port)]);
    const store = await openRedisStore({ url: redis.url, clock: systemClock });
    const slack = await startLocalSlack({
      people: ['ana', 'bo', 'chen'].map((name) => ({ id: `U0${name.toUpperCase()}`, name, realName: name })),
      channels: [{ id: channel, name: 'gpu-boxes' }],
      botToken: 'xoxb-torture',
      appToken: 'xapp-torture',
      rateLimits: false,
    });
    writeFileSync(
      join(folder.path, 'known_hosts'),
      boxes.knownHostsLine.replace(`:${boxes.port} `, `:${sshRoad.port} `),
    );
    writeFileSync(join(folder.path, 'key'), boxes.privateKey, { mode: 0o600 });
    const host = (user: string) => ({ address: '127.0.0.1', port: sshRoad.port, user, privilege: 'root' });
    folder.configure({
      defaults: { knownHosts: ['known_hosts'], identity: 'key' },
      hosts: Object.fromEntries(hosts.map((name) => [name, host(name)])),
      policy: { approvers: ['U0BO', 'U0CHEN'], required: { kill_others: 2 }, grace: '1s', unused_ttl: '10m' },
    });
    const made = new Deployment({ folder, boxes, redis, store, slack, redisRoad, sshRoad });
    await Promise.all(places.map((_, place) => made.sit(place)));
    return made;
  }

  /** Starts a process where none is. */
  async sit(place: number): Promise<void> {
    const role = places[place] ?? 'worker';
    const tokens = {
      SLACK_BOT_TOKEN: 'xoxb-torture',
      SLACK_APP_TOKEN: 'xapp-torture',
      SLACK_API_URL: this.world.slack.apiUrl,
    };
    const url = `redis://127.0.0.1:${this.world.redisRoad.port}`;
    this.sitting[place] = await this.world.folder.serve(role, {
      QUEUE_URL: url,
      ...(role === 'gateway' ? tokens : {}),
    });
  }

  /** People: Ana asks for every box again and again, Bo and Chen approve what they see. */
  people(): () => Promise<void> {
    const state = { over: false };
    const busy = new Set<string>();
    const click = async (card: Message): Promise<void> => {
      if (busy.has(card.ts)) return;
      busy.add(card.ts);
      const who = messageText(card).includes('1 of 2') ? 'U0CHEN' : 'U0BO';
      // Lost when its gateway dies at that moment; then the button is still there, and the next round clicks again.
      await this.world.slack
        .actAs(who)
        .click(card, 'Approve', { confirm: true })
        .catch(() => undefined);
      busy.delete(card.ts);
    };
    const timer = setInterval(() => {
      for (const card of this.world.slack.messages(channel).filter(isCard)) void click(card);
    }, 300);
    const asking = (async () => {
      for (let n = 0; !state.over; n += 1) {
        await this.world.slack
          .actAs('U0ANA')
          .command(channel, `/reclaim ${hosts[n % hosts.length] ?? ''}`)
          .catch(() => undefined);
        await systemClock.sleep(500);
      }
    })();
    return async () => {
      state.over = true;
      await asking;
      this.#stopClicking = () => {
        clearInterval(timer);
      };
    };
  }

  #stopClicking: () => void = () => undefined;
  /** After everything has come to rest: nobody clicks any more. */
  peopleLeave(): void {
    this.#stopClicking();
  }

  async close(): Promise<void> {
    this.peopleLeave();
    await this.world.folder.remove();
    await this.world.store.close();
    await this.world.slack.close();
    this.world.redisRoad.close();
    this.world.sshRoad.close();
    await this.world.redis.remove();
    await this.world.boxes.close();
  }
}
