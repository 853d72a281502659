/**
 * A look into the queue for whoever operates the bot: bull-board, read-only. Every part of it is asked for a token, only GET
 * is answered, and the buttons that change something are not drawn either. Loaded only where QUEUE_VIEW_PORT is set.
 */
import { createHash, timingSafeEqual } from 'node:crypto';
import { createServer } from 'node:http';
import { createBullBoard } from '@bull-board/api';
import { BullMQAdapter } from '@bull-board/api/bullMQAdapter';
import { ExpressAdapter } from '@bull-board/express';
import { Queue as BullQueue } from 'bullmq';
import express, { type NextFunction, type Request, type Response } from 'express';
import { ReclaimError } from '../errors.ts';
import { queueName } from './bull-queue.ts';

export interface QueueViewOptions {
  /** QUEUE_URL; a Redis, for bull-board reads no other. */
  readonly queueUrl: string;
  /** Names of the jobs to show. */
  readonly jobs: readonly string[];
  readonly host: string;
  /** 0 = any free port. */
  readonly port: number;
  /** The password, with any user name; also taken as a bearer token. */
  readonly token: string | undefined;
}

export interface QueueView {
  readonly port: number;
  close(): Promise<void>;
}

/** @throws ReclaimError config_invalid where it has no token, no Redis, or no free port */
export async function startQueueView(options: QueueViewOptions): Promise<QueueView> {
  const token = checked(options);
  const queues = options.jobs.map((job) => new BullQueue(queueName(job), { connection: { url: options.queueUrl } }));
  // The queue tells by itself when Redis is away.
  for (const queue of queues) queue.on('error', () => undefined);
  const pages = new ExpressAdapter();
  createBullBoard({
    queues: queues.map((queue) => new BullMQAdapter(queue, { readOnlyMode: true })),
    serverAdapter: pages,
    options: { uiConfig: { boardTitle: 'Reclaim', hideRedisDetails: true } },
  });
  const app = express();
  app.disable('x-powered-by');
  app.use((request, response, next) => {
    admit(request, response, next, token);
  });
  app.use(pages.getRouter());
  const server = createServer(app);
  await new Promise<void>((resolve, reject) => {
    server.once('error', (cause) => {
      const text = `Cannot listen on ${options.host}:${options.port} (${cause.message}), so nothing was started. Set QUEUE_VIEW_PORT to a free port, or to nothing.`;
      reject(new ReclaimError('config_invalid', text, { cause }));
    });
    server.listen(options.port, options.host, resolve);
  });
  const address = server.address();
  return {
    port: typeof address === 'object' && address !== null ? address.port : options.port,
    close: async () => {
      server.closeAllConnections();
      await new Promise<void>((resolve) => {
        server.close(() => {
          resolve();
        });
      });
      await Promise.allSettled(queues.map((queue) => queue.close()));
    },
  };
}

function checked({ token, queueUrl }: QueueViewOptions): string {
  if (token === undefined) {
    const text =
      'QUEUE_VIEW_PORT is set and QUEUE_VIEW_TOKEN is not, so nothing was started: the queue is shown to nobody without a token. Set one of 16 characters or more, or leave the port empty.';
    throw new ReclaimError('config_invalid', text);
  }
  if (!/^rediss?:/.test(queueUrl)) {
    const text =
      'The view of the queue reads a Redis, and QUEUE_URL names none, so nothing was started. Leave QUEUE_VIEW_PORT empty, or use a Redis.';
    throw new ReclaimError('config_invalid', text);
  }
  return token;
}

function admit(request: Request, response: Response, next: NextFunction, token: string): void {
  response.set('cache-control', 'no-store');
  if (!isSame(given(request.headers.authorization ?? ''), token)) {
    response.set('www-authenticate', 'Basic realm="Reclaim queue", charset="UTF-8"');
    response.status(401).type('text').send('This needs QUEUE_VIEW_TOKEN as the password, with any user name.\n');
  } else if (request.method !== 'GET' && request.method !== 'HEAD') {
    response.set('allow', 'GET, HEAD').status(405).type('text').send('The queue can only be looked at here.\n');
  } else next();
}

/** The password of `Basic`, or the token of `Bearer`. */
function given(header: string): string {
  const [scheme = '', value = ''] = header.split(' ');
  if (scheme.toLowerCase() === 'bearer') return value;
  if (scheme.toLowerCase() !== 'basic') return '';
  const said = Buffer.from(value, 'base64').toString('utf8');
  return said.slice(said.indexOf(':') + 1);
}

const digest = (text: string): Buffer => createHash('sha256').update(text).digest();
const isSame = (a: string, b: string): boolean => timingSafeEqual(digest(a), digest(b));
