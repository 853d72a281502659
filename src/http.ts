/**
 * The small HTTP side: is the process up, is it ready, what do the numbers say. Every answer is a sentence or a table.
 * Requests of Slack are handed on to whoever checks and takes them.
 */
import { createServer, type IncomingMessage, type RequestListener, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { ReclaimError } from './errors.ts';

export interface Check {
  readonly ok: boolean;
  readonly detail: string;
}

export interface HttpOptions {
  readonly host: string;
  /** 0 = any free port. */
  readonly port: number;
  /** One row per part this process depends on. Must answer within a second or so. */
  readonly ready: () => Promise<Readonly<Record<string, Check>>>;
  readonly metrics: () => Promise<string>;
  /** Answers what is posted below /alerts/. */
  readonly alerts?: (request: IncomingMessage, response: ServerResponse, path: string) => Promise<void>;
  /** Takes POST /slack/events; null in Socket Mode, and while it is not up. */
  readonly slack?: () => RequestListener | null;
}

export interface HttpServer {
  readonly port: number;
  close(): Promise<void>;
}

export async function startHttp(options: HttpOptions): Promise<HttpServer> {
  const server = createServer((request, response) => {
    answer(request, response, options).catch(() => {
      if (!response.headersSent)
        send(response, 500, 'text/plain', 'Something went wrong inside Reclaim. See its log.\n');
    });
  });
  server.requestTimeout = 10_000;
  server.headersTimeout = 5_000;
  await new Promise<void>((resolve, reject) => {
    server.once('error', (cause) => {
      const text = `Cannot listen on ${options.host}:${options.port} (${cause.message}), so nothing was started. Set HTTP_PORT to a free port.`;
      reject(new ReclaimError('config_invalid', text, { cause }));
    });
    server.listen(options.port, options.host, resolve);
  });
  const address = server.address();
  return {
    port: isTcp(address) ? address.port : options.port,
    close: async () => {
      server.closeAllConnections();
      await new Promise<void>((resolve) => {
        server.close(() => {
          resolve();
        });
      });
    },
  };
}

function isTcp(address: AddressInfo | string | null): address is AddressInfo {
  return typeof address === 'object' && address !== null;
}

async function answer(request: IncomingMessage, response: ServerResponse, options: HttpOptions): Promise<void> {
  const path = (request.url ?? '/').split('?')[0];
  if (path?.startsWith('/alerts/') === true && options.alerts !== undefined) {
    await options.alerts(request, response, path);
    return;
  }
  if (path === '/slack/events' && request.method === 'POST') {
    const listener = options.slack?.() ?? null;
    if (listener !== null) listener(request, response);
    else
      send(response, 404, 'text/plain', 'Slack is not listened to here: it talks over sockets, or this is a worker.\n');
    return;
  }
  if (request.method !== 'GET' && request.method !== 'HEAD') {
    send(response, 405, 'text/plain', 'Only GET is answered here.\n', { allow: 'GET, HEAD' });
    return;
  }
  switch (path) {
    case '/healthz':
      send(response, 200, 'text/plain', 'up\n');
      return;
    case '/readyz': {
      const checks = await options.ready();
      const ready = Object.values(checks).every((check) => check.ok);
      send(response, ready ? 200 : 503, 'application/json', `${JSON.stringify({ ready, checks }, null, 2)}\n`);
      return;
    }
    case '/metrics':
      send(response, 200, 'text/plain; version=0.0.4', await options.metrics());
      return;
    default:
      send(response, 404, 'text/plain', 'There is nothing here. Try /healthz, /readyz or /metrics.\n');
  }
}

function send(
  response: ServerResponse,
  status: number,
  type: string,
  body: string,
  headers: Record<string, string> = {},
): void {
  response.writeHead(status, { 'content-type': type, 'cache-control': 'no-store', ...headers });
  response.end(body);
}
