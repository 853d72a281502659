/** The page's own files, read from disk beside this module. */
import { readFile } from 'node:fs/promises';
import type { ServerResponse } from 'node:http';
import { extname, join } from 'node:path';

const folder = join(import.meta.dirname, 'page');
const types: Record<string, string> = {
  '.html': 'text/html; charset=utf-8',
  '.css': 'text/css; charset=utf-8',
  '.js': 'text/javascript; charset=utf-8',
};
/** Only this origin's own files; images of messages may come from anywhere the app names. */
const policy =
  "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' https: data:; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

export function servePage(response: ServerResponse, name: string): void {
  const type = types[extname(name)];
  if (type === undefined || !/^[a-z][a-z-]*\.(html|css|js)$/.test(name)) {
    response.writeHead(404, { 'content-type': 'text/plain' }).end('There is nothing here.');
    return;
  }
  readFile(join(folder, name)).then(
    (bytes) => {
      response.writeHead(200, { 'content-type': type, 'content-security-policy': policy, 'cache-control': 'no-cache' });
      response.end(bytes);
    },
    () => response.writeHead(404, { 'content-type': 'text/plain' }).end('There is nothing here.'),
  );
}
