/** /local: what the page and scripts use to see and to act. Documented in README.md. */
import type { IncomingMessage, ServerResponse } from 'node:http';
import { z } from 'zod';
import type { Actions } from './actions.ts';
import type { BoxChoice, GuideStep } from './box-choice.ts';
import { readBox } from './box-panel.ts';
import type { Faults } from './faults.ts';
import { parseJson } from './json.ts';
import type { Message, View } from './model.ts';
import { openStream } from './page-stream.ts';
import type { Sockets } from './sockets.ts';
import type { Workspace } from './workspace.ts';

export interface PageFacts {
  /** Slash commands the composer offers; `example` is a whole line to try in an empty channel. */
  readonly commands: readonly {
    readonly command: string;
    readonly hint: string;
    readonly description: string;
    readonly example?: string;
  }[];
  readonly boxName: string;
  readonly guide: readonly GuideStep[];
  readonly box?: BoxChoice;
}

interface LocalParts {
  readonly ws: Workspace;
  readonly sockets: Sockets;
  readonly faults: Faults;
  readonly actions: Actions;
  readonly page: PageFacts;
}

const entered = z.union([z.string(), z.array(z.string()), z.null()]);
const as = z.string();
const target = { ts: z.string().optional(), view: z.string().optional(), channel: z.string().optional() };

const act = z.discriminatedUnion('do', [
  z.object({ do: z.literal('command'), as, channel: z.string(), text: z.string(), thread: z.string().optional() }),
  z.object({ do: z.literal('say'), as, channel: z.string(), text: z.string(), thread: z.string().optional() }),
  z.object({ do: z.literal('click'), as, ...target, action: z.string(), confirm: z.boolean().default(false) }),
  z.object({
    do: z.literal('choose'),
    as,
    ...target,
    action: z.string(),
    value: entered,
    confirm: z.boolean().default(false),
  }),
  z.object({ do: z.literal('submit'), as, view: z.string(), values: z.record(z.string(), entered).default({}) }),
  z.object({ do: z.literal('close'), as, view: z.string(), all: z.boolean().default(false) }),
  z.object({ do: z.literal('home'), as }),
]);

const fault = z.discriminatedUnion('switch', [
  z.object({
    switch: z.literal('calls'),
    kind: z.enum(['ratelimited', 'server_error', 'reset_after_commit', 'slow', 'internal_error']),
    count: z.int().min(1).max(1000).default(1),
    method: z.string().optional(),
    retryAfterSeconds: z.number().optional(),
    delayMs: z.number().max(60_000).optional(),
  }),
  z.object({ switch: z.literal('drop_sockets') }),
  z.object({ switch: z.literal('refresh_sockets') }),
  z.object({ switch: z.literal('deaf_sockets'), on: z.boolean() }),
  z.object({ switch: z.literal('refuse_connections'), on: z.boolean() }),
  z.object({ switch: z.literal('duplicate'), count: z.int().min(1).max(1000).default(1) }),
  z.object({ switch: z.literal('clear') }),
]);

const boxWish = z.object({ name: z.string() });

function targetOf(
  ws: Workspace,
  a: { as: string; ts?: string | undefined; view?: string | undefined; channel?: string | undefined },
): Message | View {
  const found =
    a.view !== undefined
      ? ws.view(a.view)
      : ws.messages.find((m) => m.ts === a.ts && (m.onlyFor === undefined || m.onlyFor === a.as));
  if (found === undefined) throw new Error('That message or view is gone.');
  return found;
}

function viewOf(ws: Workspace, id: string): View {
  const view = ws.view(id);
  if (view === undefined) throw new Error('That view is closed.');
  return view;
}

async function perform(ws: Workspace, actions: Actions, a: z.infer<typeof act>): Promise<unknown> {
  switch (a.do) {
    case 'command':
      return actions.command(a.as, a.channel, a.text, a.thread);
    case 'say':
      return { ts: actions.say(a.as, a.channel, a.text, a.thread).ts };
    case 'click':
      return actions.act(a.as, targetOf(ws, a), a.action, { confirm: a.confirm });
    case 'choose':
      return actions.act(a.as, targetOf(ws, a), a.action, { confirm: a.confirm, entered: a.value });
    case 'submit':
      return actions.submit(a.as, viewOf(ws, a.view), a.values);
    case 'close':
      return actions.closeView(a.as, viewOf(ws, a.view), { all: a.all });
    case 'home':
      return actions.openHome(a.as);
  }
}

function setFault(parts: LocalParts, f: z.infer<typeof fault>): void {
  switch (f.switch) {
    case 'calls': {
      const { method, retryAfterSeconds, delayMs } = f;
      parts.faults.add({
        kind: f.kind,
        count: f.count,
        ...(method === undefined ? {} : { method }),
        ...(retryAfterSeconds === undefined ? {} : { retryAfterSeconds }),
        ...(delayMs === undefined ? {} : { delayMs }),
      });
      return;
    }
    case 'drop_sockets': {
      parts.sockets.drop();
      return;
    }
    case 'refresh_sockets': {
      parts.sockets.refresh();
      return;
    }
    case 'deaf_sockets': {
      parts.sockets.freeze(f.on);
      return;
    }
    case 'refuse_connections':
      parts.sockets.refusing = f.on;
      return;
    case 'duplicate':
      parts.faults.duplicateNext += f.count;
      return;
    case 'clear':
      parts.faults.clear();
      parts.sockets.refusing = false;
      {
        parts.sockets.freeze(false);
        return;
      }
  }
}

function reply(response: ServerResponse, status: number, body: unknown): void {
  response.writeHead(status, { 'content-type': 'application/json; charset=utf-8' });
  response.end(JSON.stringify(body));
}

export async function localRoute(
  parts: LocalParts,
  request: IncomingMessage,
  response: ServerResponse,
  url: URL,
  body: () => Promise<Buffer>,
): Promise<void> {
  if (request.method === 'GET' && url.pathname === '/local/stream') {
    openStream(parts, url.searchParams.get('as') ?? '', response);
    return;
  }
  if (request.method === 'GET' && url.pathname === '/local/box') {
    reply(response, 200, (await readBox()) ?? { error: 'no /proc/meminfo here' });
    return;
  }
  // Browsers send other pages' forms without asking, but not JSON.
  if (request.method !== 'POST' || !(request.headers['content-type'] ?? '').startsWith('application/json')) {
    reply(response, 405, { ok: false, error: 'POST JSON' });
    return;
  }
  const value = parseJson((await body()).toString('utf8'));
  try {
    if (url.pathname === '/local/act')
      reply(response, 200, { ok: true, result: await perform(parts.ws, parts.actions, act.parse(value)) });
    else if (url.pathname === '/local/faults') {
      setFault(parts, fault.parse(value));
      reply(response, 200, { ok: true });
    } else if (url.pathname === '/local/box' && parts.page.box !== undefined) {
      await parts.page.box.choose(boxWish.parse(value).name);
      reply(response, 200, { ok: true });
    } else reply(response, 404, { ok: false, error: 'unknown path' });
  } catch (thrown) {
    reply(response, 400, { ok: false, error: thrown instanceof z.ZodError ? z.prettifyError(thrown) : String(thrown) });
  }
}
