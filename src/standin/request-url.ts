/** The other way to an app: signed HTTP requests to its request URL, as Slack sends them without Socket Mode. */
import { createHmac } from 'node:crypto';
import { asObj, asText, parseJson, type Obj } from './json.ts';
import { ackLimitMs, type Ack, type DeliverOptions } from './sockets.ts';

export interface RequestUrl {
  readonly url: string;
  readonly signingSecret: string;
}

interface SignedRequest {
  readonly body: string;
  readonly headers: Record<string, string>;
}

/** `v0=HMAC-SHA256(secret, "v0:TIMESTAMP:BODY")`: docs.slack.dev, verifying requests from Slack. */
export function signed(
  body: string,
  contentType: string,
  secret: string,
  atSeconds = Date.now() / 1000,
): SignedRequest {
  const timestamp = String(Math.floor(atSeconds));
  const signature = createHmac('sha256', secret).update(`v0:${timestamp}:${body}`).digest('hex');
  return {
    body,
    headers: {
      'content-type': contentType,
      'user-agent': 'Slackbot 1.0 (+https://api.slack.com/robots)',
      'x-slack-request-timestamp': timestamp,
      'x-slack-signature': `v0=${signature}`,
    },
  };
}

const form = 'application/x-www-form-urlencoded';

/** Events are JSON, commands are forms, and interactions are JSON in a form. */
export function requestFor(type: string, payload: Obj, secret: string): SignedRequest {
  if (type === 'events_api') return signed(JSON.stringify(payload), 'application/json', secret);
  const fields =
    type === 'slash_commands'
      ? Object.fromEntries(Object.entries(payload).map(([key, value]) => [key, asText(value)]))
      : { payload: JSON.stringify(payload) };
  return signed(new URLSearchParams(fields).toString(), form, secret);
}

/** Posts one payload and waits up to three seconds for HTTP 200, which is the acknowledgement; its body is the answer. */
export async function post(to: RequestUrl, type: string, payload: Obj, options: DeliverOptions = {}): Promise<Ack> {
  const { body, headers } = requestFor(type, payload, to.signingSecret);
  const retry: Record<string, string> =
    options.retryAttempt === undefined || options.retryAttempt === 0
      ? {}
      : { 'x-slack-retry-num': String(options.retryAttempt), 'x-slack-retry-reason': 'http_timeout' };
  const send = () =>
    fetch(to.url, {
      method: 'POST',
      body,
      headers: { ...headers, ...retry },
      signal: AbortSignal.timeout(ackLimitMs),
    });
  const startedMs = Date.now();
  try {
    const copy = options.twice === true ? send().then((r) => r.text()) : undefined;
    const response = await send();
    const text = await response.text();
    await copy?.catch(() => undefined);
    if (!response.ok) return { outcome: 'dispatch_failed' };
    const isJson = (response.headers.get('content-type') ?? '').includes('json');
    const answer: Obj = isJson ? asObj(parseJson(text)) : text === '' ? {} : { text };
    return { outcome: 'acked', payload: answer, tookMs: Date.now() - startedMs };
  } catch (thrown) {
    return { outcome: isTimeout(thrown) ? 'operation_timeout' : 'dispatch_failed' };
  }
}

const isTimeout = (thrown: unknown): boolean => thrown instanceof Error && thrown.name === 'TimeoutError';
