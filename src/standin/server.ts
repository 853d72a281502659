/** The HTTP side: /api/METHOD for the app, /respond and /upload, /state, and /local for the page and scripts. */
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import type { Actions } from './actions.ts';
import type { Answer, Api } from './api.ts';
import type { Faults } from './faults.ts';
import { asObj, parseJson } from './json.ts';
import { localRoute, type PageFacts } from './local-routes.ts';
import { multipartFile } from './multipart.ts';
import { servePage } from './page-files.ts';
import { applyResponse } from './response-url.ts';
import type { Sockets } from './sockets.ts';
import { stateDump } from './state-dump.ts';
import type { Triggers } from './triggers.ts';
import type { Workspace } from './workspace.ts';

export interface HttpParts {
  readonly ws: Workspace;
  readonly api: Api;
  readonly triggers: Triggers;
  readonly sockets: Sockets;
  readonly faults: Faults;
  readonly actions: Actions;
  readonly page: PageFacts;
}

const maxBodyBytes = 64 << 20;

async function bodyOf(request: IncomingMessage): Promise<Buffer> {
  const chunks: Buffer[] = [];
  let size = 0;
  for await (const chunk of request as AsyncIterable<Buffer>) {
    size += chunk.length;
    if (size > maxBodyBytes) throw new Error('body too large');
    chunks.push(chunk);
  }
  return Buffer.concat(chunks);
}

export function sendJson(
  response: ServerResponse,
  status: number,
  body: unknown,
  headers: Record<string, string> = {},
): void {
  response.writeHead(status, { 'content-type': 'application/json; charset=utf-8', ...headers });
  response.end(JSON.stringify(body));
}

function sendAnswer(request: IncomingMessage, response: ServerResponse, answer: Answer): void {
  if (answer.reset === true) {
    request.socket.resetAndDestroy();
    return;
  }
  setTimeout(() => {
    sendJson(response, answer.status, answer.body, answer.headers);
  }, answer.delayMs ?? 0);
}

function takeUpload(parts: HttpParts, id: string, type: string, body: Buffer, response: ServerResponse): void {
  const file = parts.ws.files.get(id);
  if (file === undefined) {
    sendJson(response, 404, { ok: false, error: 'file_not_found' });
    return;
  }
  const bytes = type.startsWith('multipart/form-data') ? multipartFile(type, body) : body;
  parts.ws.files.set(id, { ...file, bytes });
  response.writeHead(200, { 'content-type': 'text/plain' });
  response.end(`OK - ${bytes.length}`);
}

function takeResponse(parts: HttpParts, key: string, body: Buffer, response: ServerResponse): void {
  const address = parts.triggers.useAddress(key);
  if (typeof address === 'string') {
    sendJson(response, 404, { ok: false, error: address });
    return;
  }
  const faults = applyResponse(parts.ws, address, asObj(parseJson(body.toString('utf8'))));
  if (faults.length > 0)
    sendJson(response, 400, { ok: false, error: 'invalid_blocks', response_metadata: { messages: faults } });
  else response.writeHead(200, { 'content-type': 'text/html' }).end('ok');
}

function serveFile(parts: HttpParts, id: string, response: ServerResponse): void {
  const file = parts.ws.files.get(id);
  if (file === undefined) {
    sendJson(response, 404, { ok: false, error: 'file_not_found' });
    return;
  }
  // A file is somebody's output: it is shown or downloaded, never run as a page of this origin.
  const headers = {
    'content-security-policy': "default-src 'none'; style-src 'unsafe-inline'; sandbox",
    'x-content-type-options': 'nosniff',
  };
  response.writeHead(200, { 'content-type': `${file.mimetype}; charset=utf-8`, ...headers });
  response.end(file.bytes);
}

/** A page elsewhere must not drive this workspace through the visitor's browser: only this origin may. */
function isFromHere(request: IncomingMessage): boolean {
  const host = (request.headers.host ?? '').replace(/:\d+$/, '');
  if (host !== '127.0.0.1' && host !== 'localhost' && host !== '[::1]') return false;
  const { origin } = request.headers;
  return origin === undefined || origin === `http://${request.headers.host ?? ''}`;
}

async function route(parts: HttpParts, request: IncomingMessage, response: ServerResponse): Promise<void> {
  if (!isFromHere(request)) {
    sendJson(response, 403, { ok: false, error: 'foreign_origin' });
    return;
  }
  const url = new URL(request.url ?? '/', 'http://localhost');
  const [, area = '', name = '', extra = ''] = url.pathname.split('/');
  const type = request.headers['content-type'] ?? '';
  if (area === 'api') {
    const body = (await bodyOf(request)).toString('utf8');
    sendAnswer(request, response, parts.api.call(name, request.headers.authorization ?? '', type, body));
  } else if (area === 'upload') takeUpload(parts, name, type, await bodyOf(request), response);
  else if (area === 'respond') takeResponse(parts, name, await bodyOf(request), response);
  else if (area === 'files') serveFile(parts, name, response);
  else if (area === 'state') sendJson(response, 200, stateDump(parts.ws, parts.sockets));
  else if (area === 'local') await localRoute(parts, request, response, url, () => bodyOf(request));
  else servePage(response, area === '' ? 'index.html' : area === 'page' ? name + (extra && `/${extra}`) : '');
}

export async function startHttp(parts: HttpParts, port: number): Promise<{ url: string; close(): Promise<void> }> {
  const open = new Set<Socket>();
  const server = createServer((request, response) => {
    route(parts, request, response).catch((thrown: unknown) => {
      if (response.headersSent) response.destroy();
      else
        sendJson(response, 500, {
          ok: false,
          error: 'fatal_error',
          detail: thrown instanceof Error ? thrown.message : '',
        });
    });
  });
  server.on('connection', (socket) => {
    open.add(socket);
    socket.on('close', () => open.delete(socket));
  });
  parts.sockets.attach(server);
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    server.listen(port, '127.0.0.1', resolve);
  });
  const address = server.address();
  if (address === null || typeof address === 'string') throw new Error('no address');
  return {
    url: `http://127.0.0.1:${address.port}`,
    close: () =>
      new Promise((resolve) => {
        server.close(() => {
          resolve();
        });
        // An answer on its way still arrives; a page's stream would never end by itself.
        server.closeIdleConnections();
        setTimeout(() => {
          for (const socket of open) socket.destroy();
        }, 100);
      }),
  };
}
