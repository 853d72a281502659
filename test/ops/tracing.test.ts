/** One command traced over two processes: a gateway puts its job up, a worker runs it, a collector hears of both. */
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { z } from 'zod';
import { startLocalSlack, type LocalSlack } from '../../src/standin/local-slack.ts';
import { has, redisServer, type RedisServer } from '../requests/servers.ts';
import { serveFolder, type Folder } from './processes.ts';

const attribute = z.object({ key: z.string(), value: z.object({ stringValue: z.string().optional() }) });
const span = z.object({
  traceId: z.string(),
  spanId: z.string(),
  parentSpanId: z.string().optional(),
  name: z.string(),
});
const sent = z.object({
  resourceSpans: z.array(
    z.object({
      resource: z.object({ attributes: z.array(attribute) }),
      scopeSpans: z.array(z.object({ spans: z.array(span) })),
    }),
  ),
});
type Seen = z.infer<typeof span> & { by: string };

describe.skipIf(!has('redis-server'))('traces', { timeout: 60_000 }, () => {
  const folder: Folder = serveFolder();
  const seen: Seen[] = [];
  let redis: RedisServer, slack: LocalSlack, collector: Server;

  beforeAll(async () => {
    redis = await redisServer();
    slack = await startLocalSlack({
      people: [{ id: 'U0ANA', name: 'ana', realName: 'Ana' }],
      channels: [{ id: 'C0GPU', name: 'gpu-boxes' }],
      botToken: 'xoxb-ops',
      appToken: 'xapp-ops',
    });
    collector = createServer((request, response) => {
      const chunks: Buffer[] = [];
      request.on('data', (chunk: Buffer) => chunks.push(chunk));
      request.on('end', () => {
        for (const { resource, scopeSpans } of sent.parse(JSON.parse(Buffer.concat(chunks).toString())).resourceSpans) {
          const by = resource.attributes.find(({ key }) => key === 'service.instance.id')?.value.stringValue ?? '';
          seen.push(...scopeSpans.flatMap(({ spans }) => spans.map((each) => ({ ...each, by }))));
        }
        response.end('{}');
      });
    });
    await new Promise<void>((resolve) => collector.listen(0, '127.0.0.1', resolve));
    folder.configure({ hosts: { first: { address: '127.0.0.1', port: 1 } }, policy: { approvers: ['U0ANA'] } });
  }, 60_000);
  afterAll(async () => {
    await folder.remove();
    await slack.close();
    await redis.remove();
    collector.close();
  });

  it('join what a gateway put up with what a worker did', async () => {
    const env = {
      ...{ QUEUE_URL: redis.url, OTEL_BSP_SCHEDULE_DELAY: '100' },
      OTEL_EXPORTER_OTLP_ENDPOINT: `http://127.0.0.1:${(collector.address() as AddressInfo).port}`,
    };
    const slackEnv = { SLACK_BOT_TOKEN: 'xoxb-ops', SLACK_APP_TOKEN: 'xapp-ops', SLACK_API_URL: slack.apiUrl };
    await folder.serve('worker', env);
    await folder.serve('gateway', { ...env, ...slackEnv });
    await slack.actAs('U0ANA').command('C0GPU', '/reclaim first');
    await expect
      .poll(
        () => {
          const put = seen.find((each) => each.name.startsWith('add reclaim-look') && each.by.startsWith('gateway'));
          return seen.some(
            (each) => each.by.startsWith('worker') && each.traceId === put?.traceId && each.parentSpanId === put.spanId,
          );
        },
        { timeout: 30_000, message: 'the job of the worker to be a child of what the gateway put up' },
      )
      .toBe(true);
  });
});
