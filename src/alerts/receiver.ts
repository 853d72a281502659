/**
 * POST /alerts/alertmanager and /alerts/grafana: checks who sends and what, puts it on the queue and answers. Whatever is
 * refused is refused with a sentence. Senders try again after 5xx and 429, so those are said only when that can help.
 */
import { createHash, timingSafeEqual } from 'node:crypto';
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Deps } from '../deps.ts';
import { asReclaimError } from '../errors.ts';
import { type Delivery, parseGroup } from './parsers/alertmanager.ts';
import { parseGrafana } from './parsers/grafana.ts';

export type ReceiverParts = Pick<Deps, 'config' | 'clock' | 'log' | 'store' | 'alertJobs' | 'instance'>;

const bodyBytesAtMost = 1024 * 1024;
const depthAtMost = 20;
/** Per process: enough for every rule of a large fleet at once, too little to hurt. */
const perMinute = 120;
/** A sender and its twin send the same within this; a repeat of a lasting alert comes later. */
const sameWithinMs = 20_000;

const parsers: Readonly<Record<string, (body: unknown) => Delivery | null>> = {
  '/alerts/alertmanager': (body) => parseGroup(body, 'alertmanager'),
  '/alerts/grafana': parseGrafana,
};

interface Answer {
  readonly status: number;
  readonly text: string;
  readonly headers?: Readonly<Record<string, string>>;
}

export function alertReceiver(parts: ReceiverParts) {
  const mayPass = bucket(parts.clock);
  return async (request: IncomingMessage, response: ServerResponse, path: string): Promise<void> => {
    const answer = await answerTo(parts, request, path, mayPass);
    response.writeHead(answer.status, {
      'content-type': 'text/plain; charset=utf-8',
      'cache-control': 'no-store',
      // What was not read to its end cannot be followed by another request.
      ...(request.complete ? {} : { connection: 'close' }),
      ...answer.headers,
    });
    response.end(`${answer.text}\n`);
  };
}

async function answerTo(
  parts: ReceiverParts,
  request: IncomingMessage,
  path: string,
  mayPass: () => number,
): Promise<Answer> {
  const parse = Object.hasOwn(parsers, path) ? parsers[path] : undefined;
  if (parse === undefined) {
    return { status: 404, text: 'There is nothing here. Post to /alerts/alertmanager or /alerts/grafana.' };
  }
  if (request.method !== 'POST') {
    return { status: 405, text: 'Alerts are posted here.', headers: { allow: 'POST' } };
  }
  const refused = mayEnter(parts, request) ?? limited(mayPass) ?? acceptable(request);
  if (refused !== null) return refused;
  const body = await readBody(request);
  if (body === null) return tooLarge;
  return await take(parts, path, body, parse);
}

const tooLarge: Answer = {
  status: 413,
  text: 'More than 1 MiB is not read here. Nothing was taken. Send smaller groups.',
};

function mayEnter({ config }: ReceiverParts, request: IncomingMessage): Answer | null {
  const token = config.env.ALERT_WEBHOOK_TOKEN;
  if (token === undefined) {
    return {
      status: 503,
      text: 'ALERT_WEBHOOK_TOKEN is not set here, so no alert is taken. Set it in .env and restart.',
    };
  }
  const [, given = ''] = /^Bearer +(\S+)$/i.exec(request.headers.authorization ?? '') ?? [];
  // Digests have one length whatever was sent, so that the comparison takes the same time for every guess.
  const digest = (text: string) => createHash('sha256').update(text).digest();
  if (timingSafeEqual(digest(given), digest(token))) return null;
  return {
    status: 401,
    text: 'The token is missing or wrong. Nothing was taken. Send "Authorization: Bearer" with ALERT_WEBHOOK_TOKEN.',
    headers: { 'www-authenticate': 'Bearer' },
  };
}

function limited(mayPass: () => number): Answer | null {
  const waitSeconds = mayPass();
  if (waitSeconds === 0) return null;
  return {
    status: 429,
    text: `More than ${perMinute} deliveries a minute are not taken. Nothing was taken. Try again in ${waitSeconds} s.`,
    headers: { 'retry-after': String(waitSeconds) },
  };
}

function acceptable(request: IncomingMessage): Answer | null {
  const { 'content-type': type = '', 'content-encoding': encoding = 'identity' } = request.headers;
  if (!/^application\/(?:[\w.+-]+\+)?json\s*(?:;|$)/i.test(type) || encoding.toLowerCase() !== 'identity') {
    return { status: 415, text: 'Only plain application/json is read here. Nothing was taken.' };
  }
  return Number(request.headers['content-length'] ?? 0) > bodyBytesAtMost ? tooLarge : null;
}

/** Null when there is more than may be. */
async function readBody(request: IncomingMessage): Promise<Buffer | null> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  return await new Promise((resolve, reject) => {
    request.on('data', (chunk: Buffer) => {
      bytes += chunk.length;
      if (bytes <= bodyBytesAtMost) {
        chunks.push(chunk);
        return;
      }
      request.pause();
      resolve(null);
    });
    request.on('end', () => {
      resolve(Buffer.concat(chunks));
    });
    request.on('error', reject);
  });
}

/** Counted over the text, so that a hostile body never gets near a recursive parser. */
export function tooDeep(text: string): boolean {
  let depth = 0;
  let inString = false;
  for (let i = 0; i < text.length; i += 1) {
    const char = text[i];
    if (inString) {
      if (char === '\\') i += 1;
      else if (char === '"') inString = false;
    } else if (char === '"') inString = true;
    else if (char === '{' || char === '[') {
      depth += 1;
      if (depth > depthAtMost) return true;
    } else if (char === '}' || char === ']') depth -= 1;
  }
  return false;
}

const notUnderstood: Answer = {
  status: 400,
  text: 'This is no delivery of Alertmanager (version 4) or Grafana. Nothing was taken.',
};

function parsed(body: Buffer, parse: (body: unknown) => Delivery | null): Delivery | null {
  const text = body.toString('utf8');
  if (tooDeep(text)) return null;
  try {
    return parse(JSON.parse(text));
  } catch {
    return null;
  }
}

async function take(
  parts: ReceiverParts,
  path: string,
  body: Buffer,
  parse: (body: unknown) => Delivery | null,
): Promise<Answer> {
  const delivery = parsed(body, parse);
  if (delivery === null) return notUnderstood;
  const { store, alertJobs, instance, log, config } = parts;
  if (config.alerts.channel === undefined) {
    return {
      status: 503,
      text: 'alerts.channel is not set in reclaim.yaml, so alerts have nowhere to go. Nothing was taken.',
    };
  }
  const id = `alert-${createHash('sha256').update(path).update(body).digest('hex').slice(0, 32)}`;
  const holder = `${instance}.${parts.clock.now()}.${Math.abs(body.length)}.${process.hrtime.bigint()}`;
  try {
    if (!(await store.hold(id, holder, sameWithinMs))) return { status: 200, text: 'Taken already.' };
  } catch (thrown) {
    return { status: 503, text: asReclaimError(thrown).userText };
  }
  try {
    if (delivery.alerts.length > 0) {
      await alertJobs.received({ alerts: [...delivery.alerts], truncated: delivery.truncated }, id);
    }
    return { status: 202, text: `Taken: ${delivery.alerts.length} alerts.` };
  } catch (thrown) {
    log.warn({ err: thrown }, 'an alert could not be put on the queue');
    await store.release(id, holder).catch(() => undefined);
    return { status: 503, text: 'The queue does not answer, so nothing was taken. Send it again.' };
  }
}

/** Answers 0 when one more may pass, or the seconds to wait. */
function bucket(clock: Deps['clock']): () => number {
  let left = perMinute;
  let at = clock.now();
  return () => {
    const nowMs = clock.now();
    left = Math.min(perMinute, left + ((nowMs - at) * perMinute) / 60_000);
    at = nowMs;
    if (left < 1) return Math.max(1, Math.ceil(((1 - left) * 60) / perMinute));
    left -= 1;
    return 0;
  };
}
