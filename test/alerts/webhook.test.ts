/** The webhooks: who is let in, what is taken, and a real Alertmanager that sends firing, repeat and resolved. */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { request } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { receive, type Received } from '../../src/alerts/incidents.ts';
import { alertReceiver, tooDeep } from '../../src/alerts/receiver.ts';
import { inSlot } from '../../src/alerts/topic-changes.ts';
import type { Deps } from '../../src/deps.ts';
import { ReclaimError } from '../../src/errors.ts';
import { startHttp, type HttpServer } from '../../src/http.ts';
import { systemClock } from '../../src/system-clock.ts';
import { freePort, has } from '../requests/servers.ts';
import { openOffice, type Office } from '../slack/office.ts';

const token = 'a-token-of-some-length';
let office: Office;
let http: HttpServer;
let deps: Deps;
const taken: Received[] = [];
let queueDown = false;

function listen(change: Partial<Deps['config']['env']> = {}, alerts: object = {}): Promise<HttpServer> {
  const { config } = office.deps;
  const env = { ...config.env, ALERT_WEBHOOK_TOKEN: token, ...change };
  const parts = { ...deps, config: { ...config, env, alerts: { ...config.alerts, ...alerts } } };
  const ready = () => Promise.resolve({});
  return startHttp({
    host: '127.0.0.1',
    port: 0,
    ready,
    metrics: () => Promise.resolve(''),
    alerts: alertReceiver(parts),
  });
}

beforeAll(async () => {
  office = await openOffice(systemClock, { hosts: ['gpu-box-3', 'gpu-box-4'], alerts: { channel: 'C0BOXES' } });
  deps = {
    ...office.deps,
    alertJobs: {
      ...office.deps.alertJobs,
      received: async (received) => {
        if (queueDown) throw new ReclaimError('queue_down', 'no');
        taken.push(received);
        await receive(office.deps, received);
      },
    },
  };
  http = await listen();
}, 60_000);
afterAll(async () => {
  await http.close();
  await office.close();
});

let serial = 0;
const delivery = (change: object = {}) =>
  JSON.stringify({
    ...{ version: '4', status: 'firing', receiver: 'reclaim', groupKey: String((serial += 1)), commonLabels: {} },
    alerts: [{ status: 'firing', labels: { alertname: 'LowMemory', instance: 'gpu-box-4:9100' }, annotations: {} }],
    ...change,
  });

async function post(
  body: string,
  headers: Record<string, string> = {},
  path = '/alerts/alertmanager',
  port = http.port,
) {
  const all = { authorization: `Bearer ${token}`, 'content-type': 'application/json', ...headers };
  const answer = await fetch(`http://127.0.0.1:${port}${path}`, { method: 'POST', headers: all, body });
  return { status: answer.status, text: await answer.text(), headers: answer.headers };
}

describe('a webhook', () => {
  const deep = `{"a":${'['.repeat(30)}${']'.repeat(30)}}`;
  it.each<[string, number, string, Record<string, string>, string?]>([
    ['no token', 401, '{}', { authorization: '' }],
    ['a wrong token', 401, '{}', { authorization: 'Bearer wrong' }],
    ['a token of the same length', 401, '{}', { authorization: `Bearer ${'x'.repeat(token.length)}` }],
    ['another scheme', 401, '{}', { authorization: `Basic ${token}` }],
    ['a form', 415, 'a=b', { 'content-type': 'application/x-www-form-urlencoded' }],
    ['text', 415, '{}', { 'content-type': 'text/plain' }],
    ['a compressed body', 415, '{}', { 'content-encoding': 'gzip' }],
    ['no JSON', 400, '{', {}],
    ['JSON that is no delivery', 400, '{"version":"4"}', {}],
    ['an empty body', 400, '', {}],
    ['a body too deep', 400, deep, {}],
    ['more than 1 MiB', 413, `{"a":"${'x'.repeat(1024 * 1024)}"}`, {}],
    ['another path', 404, '{}', {}, '/alerts/nagios'],
    ['a path of the prototype', 404, '{}', {}, '/alerts/constructor'],
  ])('refuses %s with %i and a sentence', async (_title, status, body, headers, path) => {
    const before = taken.length;
    const answer = await post(body, headers, path);
    expect(answer.status).toBe(status);
    expect(answer.text).toMatch(/^[A-Z].*\.\n$/);
    expect(taken).toHaveLength(before);
  });

  it('refuses GET with 405', async () => {
    const answer = await fetch(`http://127.0.0.1:${http.port}/alerts/grafana`);
    expect([answer.status, answer.headers.get('allow')]).toEqual([405, 'POST']);
  });

  it('ends a body that only says later how large it is', async () => {
    const sent = request({
      ...{ port: http.port, host: '127.0.0.1', method: 'POST', path: '/alerts/alertmanager' },
      headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json', 'transfer-encoding': 'chunked' },
    });
    sent.on('error', () => undefined);
    const chunk = 'x'.repeat(64 * 1024);
    for (let n = 0; n < 40; n += 1) sent.write(chunk);
    const [response] = (await once(sent, 'response')) as [{ statusCode: number }];
    expect(response.statusCode).toBe(413);
    sent.destroy();
  });

  it('takes the same delivery once', async () => {
    const before = taken.length;
    const body = delivery();
    const answers = await Promise.all([post(body), post(body), post(body)]);
    expect(answers.map((a) => a.status).sort()).toEqual([200, 200, 202]);
    expect(taken).toHaveLength(before + 1);
    expect(await inSlot(office.store.topics, 'incident', 'gpu-box-4')).toMatchObject({ count: 1, state: 'open' });
  });

  it('answers 503 while the queue is down, and takes the same delivery when it is back', async () => {
    const body = delivery();
    queueDown = true;
    const answer = await post(body);
    queueDown = false;
    expect(answer).toMatchObject({ status: 503 });
    expect((await post(body)).status).toBe(202);
  });

  it.each([
    ['no token is set', { ALERT_WEBHOOK_TOKEN: undefined }, {}, /ALERT_WEBHOOK_TOKEN/],
    ['alerts have no channel', {}, { channel: undefined }, /alerts\.channel/],
  ])('answers 503 when %s', async (_title, env, alerts, said) => {
    const other = await listen(env, alerts);
    const answer = await post(delivery(), {}, '/alerts/alertmanager', other.port);
    await other.close();
    expect(answer.status).toBe(503);
    expect(answer.text).toMatch(said);
  });

  it('answers 429 with a time to wait when flooded', async () => {
    const other = await listen();
    const statuses = [];
    for (let n = 0; n < 140; n += 1) statuses.push(await post('{', {}, '/alerts/grafana', other.port));
    await other.close();
    const [first] = statuses.filter((s) => s.status === 429);
    expect(first?.text).toMatch(/Try again in \d+ s/);
    expect(Number(first?.headers.get('retry-after'))).toBeGreaterThan(0);
    expect(statuses.filter((s) => s.status === 400).length).toBeGreaterThanOrEqual(120);
  });

  it('measures depth outside of strings only', () => {
    expect(tooDeep(JSON.stringify({ a: '[[[[[[[[[[[[[[[[[[[[[[[["\\"{{{{{{{{{{{{{{{{{{{{' }))).toBe(false);
    expect(tooDeep('['.repeat(21))).toBe(true);
    expect(tooDeep('[]'.repeat(50_000))).toBe(false);
  });
});

describe.skipIf(!has('prometheus-alertmanager'))('a real Alertmanager', () => {
  const folder = mkdtempSync(join(tmpdir(), 'reclaim-alertmanager-'));
  let child: ChildProcess | undefined;
  let port = 0;
  beforeAll(async () => {
    port = await freePort();
    const webhook = {
      url: `http://127.0.0.1:${http.port}/alerts/alertmanager`,
      send_resolved: true,
      http_config: { authorization: { type: 'Bearer', credentials: token } },
    };
    // JSON is YAML. Repeats come later than what counts as the same delivery.
    const route = {
      receiver: 'reclaim',
      group_by: ['alertname'],
      group_wait: '0s',
      group_interval: '1s',
      repeat_interval: '21s',
    };
    const config = { route, receivers: [{ name: 'reclaim', webhook_configs: [webhook] }] };
    writeFileSync(join(folder, 'alertmanager.yml'), JSON.stringify(config));
    child = spawn(
      'prometheus-alertmanager',
      [
        `--config.file=${join(folder, 'alertmanager.yml')}`,
        `--storage.path=${join(folder, 'data')}`,
        `--web.listen-address=127.0.0.1:${port}`,
        '--cluster.listen-address=',
      ],
      { stdio: 'ignore' },
    );
    await vi.waitFor(
      async () => {
        expect((await fetch(`http://127.0.0.1:${port}/-/ready`)).status).toBe(200);
      },
      {
        timeout: 30_000,
        interval: 100,
      },
    );
  }, 40_000);
  afterAll(async () => {
    if (child?.exitCode === null) {
      child.kill('SIGKILL');
      await once(child, 'exit');
    }
    rmSync(folder, { recursive: true, force: true });
  });

  const tell = async (endsAt?: Date) => {
    const labels = {
      alertname: 'HostOutOfMemory',
      instance: '10.0.0.5:9100',
      nodename: 'gpu-box-3',
      severity: 'warning',
    };
    const alert = {
      labels,
      annotations: { summary: 'Host out of memory' },
      ...(endsAt === undefined ? {} : { endsAt: endsAt.toISOString() }),
    };
    const answer = await fetch(`http://127.0.0.1:${port}/api/v2/alerts`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify([alert]),
    });
    expect(answer.status).toBe(200);
  };
  const becomes = (what: object, timeout = 30_000) =>
    vi.waitFor(
      async () => {
        expect(await inSlot(office.store.topics, 'incident', 'gpu-box-3')).toMatchObject(what);
      },
      {
        timeout,
        interval: 200,
      },
    );

  it('opens the incident of the box, folds its repeat in, and resolves it', async () => {
    await tell(new Date(Date.now() + 3_600_000));
    await becomes({ state: 'open', count: 1, title: 'HostOutOfMemory: Host out of memory', source: 'alertmanager' });
    await becomes({ state: 'open', count: 2 }, 60_000);
    await tell(new Date(Date.now() - 1_000));
    await becomes({ state: 'resolved', firing: [] });
  }, 120_000);
});
