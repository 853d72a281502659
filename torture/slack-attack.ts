/** Attacks on the doors of the gateway: Slack's requests forged, replayed, spoiled and from elsewhere; a stolen webhook token. */
import { createServer, type Server } from 'node:http';
import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { text as textOf } from 'node:stream/consumers';
import { receive } from '../src/alerts/incidents.ts';
import { parseGroup } from '../src/alerts/parsers/alertmanager.ts';
import { type HttpServer, startHttp } from '../src/http.ts';
import { type Gateway, startGateway } from '../src/slack/gateway.ts';
import { signed } from '../src/standin/request-url.ts';
import { systemClock } from '../src/system-clock.ts';
import { type Office, openOffice } from '../test/slack/office.ts';
import { channel, priya, sam } from '../test/standin/world.ts';
import { thoughtOf } from '../test/requests/fixtures.ts';
import { mutated, reshaped, strangeValues } from './mutate.ts';
import type { Chance, Tally } from './part.ts';

const signingSecret = 'a-secret-of-the-app';
interface Recorded {
  readonly body: string;
  readonly contentType: string;
}

/** Every text that Slack would read as markup; raw text in rich text blocks is shown as it is. */
function markupIn(node: unknown): string[] {
  if (Array.isArray(node)) return node.flatMap(markupIn);
  if (typeof node !== 'object' || node === null) return [];
  if ('type' in node && node.type === 'mrkdwn' && 'text' in node && typeof node.text === 'string') return [node.text];
  return Object.values(node).flatMap(markupIn);
}

export class SlackDoors {
  readonly #recorded: Recorded[] = [];
  readonly #office: Office;
  readonly #gateway: Gateway;
  readonly #http: HttpServer;
  readonly #recorder: Server;
  readonly #url: string;

  private constructor(office: Office, gateway: Gateway, http: HttpServer) {
    this.#office = office;
    this.#gateway = gateway;
    this.#http = http;
    this.#url = `http://127.0.0.1:${http.port}/slack/events`;
    // Stands between Slack and us, and keeps what passes.
    this.#recorder = createServer((request, response) => {
      void (async () => {
        const body = await textOf(request);
        this.#recorded.push({ body, contentType: request.headers['content-type'] ?? '' });
        const headers = Object.entries(request.headers).flatMap(([k, v]) =>
          typeof v === 'string' && k !== 'content-length' && k !== 'connection' ? [[k, v] as [string, string]] : [],
        );
        const answer = await fetch(this.#url, { method: 'POST', body, headers });
        response
          .writeHead(answer.status, { 'content-type': answer.headers.get('content-type') ?? 'text/plain' })
          .end(await answer.text());
      })();
    });
  }

  static async open(): Promise<SlackDoors> {
    const office = await openOffice(systemClock, {
      ...{ hosts: ['box-1', 'box-2', 'box-3'], slack: { rateLimits: false }, alerts: { channel } },
      policy: { approvers: [sam], self_approval: 'never' },
      paint: (svg) => Promise.resolve(Buffer.from(svg)),
    });
    const { SLACK_BOT_TOKEN: botToken, SLACK_API_URL: apiUrl } = office.deps.config.env;
    const gateway = await startGateway(office.deps, { botToken, appToken: undefined, signingSecret, apiUrl });
    const quiet = { ready: () => Promise.resolve({}), metrics: () => Promise.resolve('') };
    const http = await startHttp({ host: '127.0.0.1', port: 0, ...quiet, slack: () => gateway.listener });
    const doors = new SlackDoors(office, gateway, http);
    doors.#recorder.listen(0, '127.0.0.1');
    await once(doors.#recorder, 'listening');
    const { port } = doors.#recorder.address() as AddressInfo;
    office.slack.sockets.requestUrl = { url: `http://127.0.0.1:${port}/`, signingSecret };
    await doors.#record();
    return doors;
  }

  /** One command, one click and one dialog of real people: the material. The request stays pending. */
  async #record(): Promise<void> {
    const { slack, store, deps } = this.#office;
    await slack.actAs(priya).command(channel, '/reclaim box-1');
    const card = await slack.waitFor('the card', () =>
      slack.messages(channel).find((m) => m.text.startsWith('box-1:')),
    );
    const open = await store.openFor('box-1');
    if (open === null) throw new Error('no request');
    const thought = thoughtOf([{ pid: 100, user: 'ann' }], { host: 'box-1' });
    await deps.requests.looked(open.id, { thought, hostKey: 'SHA256:k' });
    const asking = await slack.waitFor('its buttons', () =>
      slack.messages(channel).find((m) => m.ts === card.ts && JSON.stringify(m.blocks).includes('Approve')),
    );
    await slack.actAs(priya).click(asking, 'Approve', { confirm: true });
    await slack
      .actAs(sam)
      .click(asking, 'Deny')
      .catch(() => undefined);
    const dialog = await slack.waitFor('the dialog', () => slack.actAs(sam).modal());
    await slack.actAs(sam).close(dialog);
    await slack.actAs(priya).openHome();
  }

  async attack(chance: Chance, tally: Tally, breach: (what: string) => void): Promise<void> {
    const { store } = this.#office;
    const before = JSON.stringify(await store.openFor('box-1'));
    const { body, contentType } = chance.pick(this.#recorded);
    const send = async (request: { body: string; headers: Record<string, string> }) => {
      const answer = await fetch(this.#url, { method: 'POST', ...request, signal: AbortSignal.timeout(20_000) });
      await answer.text();
      return answer.status;
    };
    const good = signed(body, contentType, signingSecret);
    const now = Date.now() / 1000;
    const forged: { body: string; headers: Record<string, string> } = chance.pick([
      () => signed(body, contentType, 'another-secret'),
      () => signed(body, contentType, signingSecret, now - chance.between(301, 100_000)),
      () => signed(body, contentType, signingSecret, now + chance.between(301, 100_000)),
      () => ({ body: `${body}&x=1`, headers: good.headers }),
      () => ({
        body,
        headers: {
          ...good.headers,
          'x-slack-signature': mutated(chance, good.headers['x-slack-signature'] ?? '').replaceAll(/[^\x21-\x7e]/g, ''),
        },
      }),
      () => ({ body, headers: { 'content-type': contentType } }),
    ])();
    const isSame = forged.body === body && forged.headers['x-slack-signature'] === good.headers['x-slack-signature'];
    const status = await send(forged);
    tally.add('forged and replayed Slack requests');
    if (!isSame && (status < 400 || status >= 500)) breach(`a forged request was answered with ${status}`);
    // Signed well, but no person of ours and no payload Slack would send.
    const foreign = body
      .replaceAll('T0LOCAL', `T0FOREIGN${chance.below(99)}`)
      .replaceAll(priya, chance.pick(['U0FAR', 'U0NOBODY', sam]));
    const odd = chance.yes(0.5) ? this.#spoiled(chance, foreign) : foreign;
    const answer = await send(signed(odd, contentType, signingSecret)).catch((e: unknown) => String(e));
    tally.add('well signed requests from elsewhere, or spoiled');
    // Signed by Slack itself, it would be a fault of Slack: it may be refused in any way, but not hang.
    if (typeof answer === 'number' && answer >= 500) tally.add('of them refused with 500');
    if (typeof answer === 'string') breach(`${answer} for ${odd.slice(0, 300)}`);
    const after = await store.openFor('box-1');
    if (after === null || after.votes.length > 0)
      breach(`an attack changed the request: ${JSON.stringify(after).slice(0, 300)} from ${before.slice(0, 80)}`);
  }

  #spoiled(chance: Chance, body: string): string {
    const fields = new URLSearchParams(body);
    const payload = fields.get('payload');
    if (payload === null) return mutated(chance, body);
    fields.set('payload', JSON.stringify(reshaped(chance, JSON.parse(payload), strangeValues(chance, 5))));
    return fields.toString();
  }

  /** With the token of the webhook somebody can make noise, and nothing else. */
  async stolenToken(chance: Chance, tally: Tally, breach: (what: string) => void): Promise<void> {
    const { store, deps, slack } = this.#office;
    const evil = chance.pick([
      '<!channel>',
      '*bold* <https://evil.example|click>',
      '/reclaim box-2',
      'Approve',
      '`\n```',
      '\u202egnp',
    ]);
    const labels = {
      alertname: evil,
      instance: chance.pick(['box-2', 'box-3', '192.0.2.9', 'evil.example', evil]),
      x: evil,
    };
    const alerts = [{ status: chance.pick(['firing', 'resolved']), labels, annotations: { summary: evil.repeat(3) } }];
    const body = { version: '4', status: 'firing', receiver: evil, groupKey: evil, commonLabels: {}, alerts };
    const delivery = parseGroup(reshaped(chance, body, strangeValues(chance, 3)), 'alertmanager');
    if (delivery === null) return;
    await receive(deps, { alerts: [...delivery.alerts], truncated: delivery.truncated });
    tally.add('alerts with a stolen token');
    for (const record of await store.list({ limit: 1_000 })) {
      if (record.run !== undefined || record.votes.length > 0) breach(`an alert approved ${record.id}`);
      if (!['box-1', 'box-2', 'box-3'].includes(record.host)) breach(`an alert made us look at ${record.host}`);
    }
    for (const message of slack.messages(channel).filter((m) => m.botId !== undefined)) {
      const markup = [message.text, ...markupIn(message.blocks)].find((text) =>
        /<!channel>|<https:\/\/evil/.test(text),
      );
      if (markup !== undefined) breach(`text of an alert became markup: ${markup.slice(0, 300)}`);
    }
  }

  async close(): Promise<void> {
    await this.#gateway.stop();
    await this.#http.close();
    this.#recorder.closeAllConnections();
    this.#recorder.close();
    await this.#office.close();
  }
}
