/** One Web API call: token, scope, rate, fault, method. Slack answers failures with HTTP 200 and `{ok: false, error}`. */
import { Args } from './args.ts';
import type { Faults } from './faults.ts';
import type { Obj } from './json.ts';
import { chatMethods } from './methods/chat.ts';
import { conversationMethods } from './methods/conversations.ts';
import { fileMethods } from './methods/files.ts';
import { peopleMethods } from './methods/people.ts';
import type { Method } from './methods/types.ts';
import { viewMethods } from './methods/views.ts';
import { SlackRefusal } from './model.ts';
import { Rates } from './rates.ts';
import type { Sockets } from './sockets.ts';
import type { Triggers } from './triggers.ts';
import type { Workspace } from './workspace.ts';

export interface Answer {
  readonly status: number;
  readonly headers?: Record<string, string>;
  readonly body: Obj;
  /** The connection is cut instead of answered, after the method has taken effect. */
  readonly reset?: boolean;
  readonly delayMs?: number;
}

export interface ApiOptions {
  readonly ws: Workspace;
  readonly triggers: Triggers;
  readonly faults: Faults;
  readonly sockets: Sockets;
  readonly botToken: string;
  readonly appToken: string;
  readonly scopes: readonly string[];
  readonly rateLimits: boolean;
  readonly baseUrl: () => string;
}

export class Api {
  readonly #o: ApiOptions;
  readonly #rates = new Rates();
  readonly #methods: Record<string, Method>;

  constructor(options: ApiOptions) {
    this.#o = options;
    this.#methods = {
      ...chatMethods,
      ...conversationMethods,
      ...fileMethods,
      ...peopleMethods,
      ...viewMethods,
      'apps.connections.open': { token: 'app', perMinute: 60, run: () => this.#openConnection() },
    };
  }

  #openConnection(): Obj {
    if (this.#o.sockets.refusing) throw new SlackRefusal('internal_error');
    return { url: `${this.#o.baseUrl().replace(/^http/, 'ws')}/link?ticket=${this.#o.sockets.ticket()}` };
  }

  call(name: string, authorization: string, contentType: string, body: string): Answer {
    const fault = this.#o.faults.take(name);
    if (fault?.kind === 'ratelimited') return this.#limited(name, fault.retryAfterSeconds ?? 1);
    if (fault?.kind === 'server_error')
      return this.#report(name, { status: 503, body: { ok: false, error: 'service_unavailable' } });
    if (fault?.kind === 'internal_error')
      return this.#report(name, { status: 200, body: { ok: false, error: 'internal_error' } });
    const answer = this.#run(name, authorization, contentType, body);
    if (fault?.kind === 'reset_after_commit') return { ...answer, reset: true };
    if (fault?.kind === 'slow') return { ...answer, delayMs: fault.delayMs ?? 4_000 };
    return answer;
  }

  #run(name: string, authorization: string, contentType: string, body: string): Answer {
    try {
      const method = this.#methods[name];
      if (method === undefined) throw new SlackRefusal('unknown_method');
      const args = Args.parse(contentType, body);
      this.#authorize(method, authorization, args);
      const wait = this.#o.rateLimits ? this.#rates.take(name, method, args.text('channel')) : 0;
      if (wait > 0) return this.#limited(name, wait);
      const { ws, triggers } = this.#o;
      const result = method.run({ ws, args, triggers, baseUrl: this.#o.baseUrl() });
      const headers = { 'x-oauth-scopes': this.#o.scopes.join(',') };
      return this.#report(name, { status: 200, headers, body: { ok: true, ...result } });
    } catch (thrown) {
      if (!(thrown instanceof SlackRefusal)) throw thrown;
      return this.#report(name, { status: 200, body: { ok: false, error: thrown.code, ...thrown.extra } });
    }
  }

  #authorize(method: Method, authorization: string, args: Args): void {
    const token = authorization.replace(/^Bearer ?/, '') || args.text('token');
    if (token === '') throw new SlackRefusal('not_authed');
    const { botToken, appToken, scopes } = this.#o;
    if (token !== botToken && token !== appToken) throw new SlackRefusal('invalid_auth');
    if ((method.token === 'app') !== (token === appToken)) throw new SlackRefusal('not_allowed_token_type');
    if (method.scope !== undefined && !scopes.includes(method.scope))
      throw new SlackRefusal('missing_scope', { needed: method.scope, provided: scopes.join(',') });
  }

  #limited(name: string, seconds: number): Answer {
    return this.#report(name, {
      status: 429,
      headers: { 'retry-after': String(seconds) },
      body: { ok: false, error: 'ratelimited' },
    });
  }

  #report(method: string, answer: Answer): Answer {
    const error = answer.body['error'];
    const failed = typeof error === 'string' ? { error } : {};
    this.#o.ws.announce({ type: 'call', method, ok: answer.body['ok'] === true, ...failed });
    return answer;
  }
}
