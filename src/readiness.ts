/** What /readyz says: one row per part this process depends on, each asked now, none waited for long. */
import type { Deps } from './deps.ts';
import { asReclaimError, ReclaimError } from './errors.ts';
import type { Check } from './http.ts';
import type { Gateway, GatewayHealth } from './slack/gateway.ts';

const patienceMs = 3_000;

export interface ReadinessParts {
  readonly deps: Deps;
  readonly gateway: Gateway | null;
  /** True from the moment the process was asked to end: it takes no new work. */
  readonly draining: boolean;
}

export async function readiness({ deps, gateway, draining }: ReadinessParts): Promise<Record<string, Check>> {
  const asked = async (ping: () => Promise<void>): Promise<Check> => {
    const late = new AbortController();
    const tooLate = deps.clock.sleep(patienceMs, late.signal).then(() => {
      throw new ReclaimError('store_down', `No answer within ${patienceMs / 1000} s.`);
    });
    try {
      await Promise.race([ping(), tooLate]);
      return { ok: true, detail: 'answers' };
    } catch (thrown) {
      return { ok: false, detail: asReclaimError(thrown).userText };
    } finally {
      tooLate.catch(() => undefined);
      late.abort(new Error('answered'));
    }
  };
  const [store, queue] = await Promise.all([asked(() => deps.store.ping()), asked(() => deps.queue.ping())]);
  return {
    store,
    queue,
    ...(gateway === null ? {} : { slack: await slackCheck(gateway) }),
    ...(draining ? { process: { ok: false, detail: 'is ending: it finishes what it has and takes nothing new' } } : {}),
  };
}

async function slackCheck(gateway: Gateway): Promise<Check> {
  try {
    const { ok, ...facts } = await gateway.health();
    return { ok, detail: sentence(facts) };
  } catch {
    const openSockets = gateway.openSockets();
    const over = gateway.listener === null ? `${openSockets} sockets open` : 'over HTTP';
    return { ok: gateway.listener !== null || openSockets > 0, detail: `${over}, what is undelivered is not known` };
  }
}

function sentence({ over, openSockets, undelivered, oldestUndeliveredAt }: Omit<GatewayHealth, 'ok'>): string {
  const waiting =
    undelivered === 0 ? 'nothing undelivered' : `${undelivered} undelivered since ${oldestUndeliveredAt ?? '?'}`;
  return `${over === 'http' ? 'over HTTP' : `${openSockets} sockets open`}, ${waiting}`;
}
