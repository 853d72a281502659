/** Alerts as people meet them in Slack: one thread per host and incident, other bots' messages as data and nothing more. */
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { receive } from '../../src/alerts/incidents.ts';
import { attendIncident } from '../../src/alerts/attend.ts';
import { inSlot } from '../../src/alerts/topic-changes.ts';
import type { Alert } from '../../src/alerts/parsers/alert.ts';
import type { Incident } from '../../src/alerts/topics.ts';
import { buttonLabels, messageText } from '../../src/demo/transcript.ts';
import type { Message } from '../../src/standin/model.ts';
import { systemClock } from '../../src/system-clock.ts';
import { thoughtOf } from '../requests/fixtures.ts';
import { openOffice, type Office } from '../slack/office.ts';
import { priya, sam } from '../standin/world.ts';

const alerts = 'C0ALERTS';
const noise = 'C0NOISE';
let office: Office;
let n = 0;
const host = (): string => `box-${n}`;

beforeAll(async () => {
  office = await openOffice(systemClock, {
    hosts: Array.from({ length: 30 }, (_, i) => `box-${i}`),
    alerts: { channel: alerts, channels_to_read: [alerts, noise] },
    policy: { approvers: [sam] },
    slack: {
      rateLimits: false,
      channels: [
        { id: alerts, name: 'alerts' },
        { id: noise, name: 'noise' },
      ],
    },
  });
  await office.startGateway();
}, 60_000);
beforeEach(() => {
  n += 1;
});
afterAll(async () => {
  await office.close();
});

const alert = (some: Partial<Alert> = {}): Alert => ({
  source: 'alertmanager',
  state: 'firing',
  title: 'HostOutOfMemory',
  fingerprint: `fp-${host()}`,
  hints: [{ from: 'nodename', said: host() }],
  words: [],
  about: 'memory',
  ...some,
});
const hear = (...some: Partial<Alert>[]) =>
  receive(office.deps, { alerts: some.map((each) => alert(each)), truncated: 0 });
const incident = () => inSlot(office.store.topics, 'incident', host());

const roots = (of = host(), channel = alerts): Message[] =>
  office.slack.messages(channel).filter((m) => m.threadTs === undefined && m.text.startsWith(`${of}:`));
const root = (wanted: RegExp): Promise<Message> =>
  office.slack.waitFor(`the root of ${host()} to say ${wanted}`, () =>
    roots().find((m) => wanted.test(messageText(m))),
  );

/** What the look job would do. */
async function look(processes = [{ pid: 4242, user: 'bob' }], available?: number): Promise<Incident> {
  const live = await incident();
  const thought = thoughtOf(processes, { host: host() });
  if (available !== undefined) thought.diagnosis.memory.availableKiB = available;
  await office.deps.requests.looked(live!.request!, { thought, hostKey: 'SHA256:x' });
  return (await attendIncident(office.deps, live!.id))!;
}

describe('an alert of a known host', () => {
  it('opens one thread: the root says where it stands, the report with its buttons is a reply', async () => {
    await hear({});
    await root(/memory alert, looking/);
    await look();
    const shown = await root(/waiting for approval/);
    const card = await office.slack.waitFor('the card', () =>
      office.slack.thread(alerts, shown.ts).find((m) => buttonLabels(m).some((l) => l.startsWith('Approve'))),
    );
    expect(messageText(card)).toContain('an alert');
    expect(buttonLabels(shown)).toEqual(['Look again', 'Silence 1 h', 'Silence 8 h', 'Silence 24 h']);
    expect(roots()).toHaveLength(1);
  });

  it('folds repeats and other alerts of the host in with a count, and ends when none fires any more', async () => {
    await hear({});
    await hear({});
    await hear({ fingerprint: `other-${host()}`, title: 'SwapFull' });
    await root(/Fired 3 times/);
    expect(roots()).toHaveLength(1);
    await look();
    await hear({ state: 'resolved' });
    await root(/another still fires/);
    await hear({ state: 'resolved', fingerprint: `other-${host()}`, hints: [] });
    const shown = await root(/resolved elsewhere/);
    expect(messageText(shown)).toContain('still waits for approval');
    const said = await office.slack.waitFor('the end in the thread', () =>
      office.slack.thread(alerts, shown.ts).find((m) => m.ts !== shown.ts && /resolved elsewhere/.test(m.text)),
    );
    expect(said.threadTs).toBe(shown.ts);
  });

  it('reopens the same thread with a new look when it fires again inside the window', async () => {
    await hear({});
    await look();
    const first = await incident();
    await hear({ state: 'resolved' });
    await root(/resolved elsewhere/);
    await office.deps.requests.decide(
      { id: first!.request!, person: { id: sam }, surface: 'slack', verdict: 'deny' },
      { person: (id) => Promise.resolve({ id, standing: 'member' }), groupMembers: () => Promise.resolve([]) },
    );
    await hear({});
    await root(/Reopened once/);
    const again = await incident();
    expect(again).toMatchObject({ id: first!.id, state: 'open', reopened: 1 });
    expect(again!.request).not.toBe(first!.request);
    expect(roots()).toHaveLength(1);
  });

  it('says that the rule was wrong when plenty is available', async () => {
    await hear({ title: 'High memory usage' });
    await look([], 350);
    expect(messageText(await root(/The alert rule was wrong/))).toContain('35 % is available');
  });

  it('says that more alerts exist which the sender cut off', async () => {
    await receive(office.deps, { alerts: [alert()], truncated: 7 });
    await root(/cut off 7 more/);
  });
});

describe('silence', () => {
  it('is begun by a click, shows who and until when, counts without posting, and is ended by a click', async () => {
    await hear({});
    await look();
    const shown = await root(/waiting for approval/);
    await office.slack.actAs(priya).click(shown, 'Silence 8 h');
    await root(new RegExp(`Silenced until .* by .*${priya}`));
    await hear({});
    expect(await incident()).toMatchObject({ count: 2 });
    await office.slack.actAs(priya).click(shown, 'End silence');
    await office.slack.waitFor('the buttons to be back', () => buttonLabels(shown).includes('Silence 1 h'));
    const events = await office.store.events({ host: host(), limit: 100 });
    expect(events.filter((e) => e.what.startsWith('silence')).map((e) => [e.who, e.what])).toEqual([
      [priya, 'silenced'],
      [priya, 'silence_ended'],
    ]);
  });

  it('is begun by a command too, and keeps new incidents away until it is off', async () => {
    const asker = office.slack.actAs(priya);
    await asker.command(alerts, `/reclaim silence ${host()} 8h`);
    await office.slack.waitFor('the answer', () =>
      asker.ephemerals().find((m) => m.text.includes(`${host()} are silent`)),
    );
    await hear({});
    expect(await incident()).toBeNull();
    await asker.command(alerts, `/reclaim silence ${host()} off`);
    await office.slack.waitFor('the end', () =>
      asker.ephemerals().find((m) => m.text.includes(`${host()} are posted again`)),
    );
    await hear({});
    await root(/memory alert/);
  });

  it.each(['soon', '0h', '9d', '1y', '-1h'])('refuses "%s" as a time', async (text) => {
    const asker = office.slack.actAs(priya);
    await asker.command(alerts, `/reclaim silence ${host()} ${text}`);
    await office.slack.waitFor('the refusal', () =>
      asker.ephemerals().find((m) => m.text.includes(`"${text}" is no time`)),
    );
  });

  it('is not for strangers', async () => {
    await hear({});
    const shown = await root(/memory alert/);
    await office.slack.actAs('U0FAR').click(shown, 'Silence 1 h');
    await office.slack.waitFor('the refusal', () =>
      office.slack
        .actAs('U0FAR')
        .ephemerals()
        .find((m) => /Only full members/.test(m.text)),
    );
    expect((await incident())?.silence).toBeUndefined();
  });
});

const zabbix = (title: string, color: string, of: string | null) => ({
  fallback: title,
  title,
  color,
  fields: [...(of === null ? [] : [{ title: 'Host', value: of }]), { title: 'Severity', value: 'High' }],
});

describe('messages of other bots', () => {
  it('open an incident in alerts.channel, and an edit that turns green ends it', async () => {
    const told = office.slack.postAsApp(
      'zabbix',
      noise,
      '',
      [],
      [zabbix('PROBLEM: High memory utilization', '#E45959', host())],
    );
    await root(/memory alert/);
    office.slack.editAsApp(told, { attachments: [zabbix('High memory utilization', '#009900', null)] });
    await root(/resolved elsewhere/);
    expect(roots()).toHaveLength(1);
  });

  it('are counted once however often they are edited while they fire', async () => {
    const told = office.slack.postAsApp(
      'zabbix',
      noise,
      '',
      [],
      [zabbix('PROBLEM: High memory utilization', '#E45959', host())],
    );
    await root(/memory alert/);
    office.slack.editAsApp(told, { text: 'acknowledged by nobody yet, memory' });
    office.slack.postAsApp('zabbix', noise, '', [], [zabbix('PROBLEM: Swap is full', '#E45959', host())]);
    await root(/Fired 2 times/);
  });

  it('are never a command, an approval or a loop: people, ourselves, other subjects and other channels open nothing', async () => {
    office.slack.actAs(priya).say(noise, `[FIRING:1] HostOutOfMemory (${host()})`);
    office.slack.postAsApp('monitor', noise, `/reclaim ${host()} approve`);
    office.slack.postAsApp('monitor', noise, `[FIRING:1] DiskFull on ${host()}`);
    await office.deps.requests.ask({ host: host(), requester: { id: priya }, surface: 'slack', channel: noise });
    await office.slack.waitFor('our own card', () =>
      office.slack.messages(noise).find((m) => m.text.startsWith(host())),
    );
    // A later message that counts shows that the earlier ones were read.
    const before = n;
    n += 1;
    office.slack.postAsApp('alertmanager', noise, `[FIRING:1] HostOutOfMemory (${host()})`);
    await root(/memory alert/);
    expect(await inSlot(office.store.topics, 'incident', `box-${before}`)).toBeNull();
  });
});

describe('an alert of an unknown host', () => {
  const question = (text: string) =>
    office.slack.waitFor(`a question about ${text}`, () =>
      office.slack.messages(alerts).find((m) => m.text.includes(text)),
    );

  it('is asked about with a menu, folds its repeats, and the answer opens the incident', async () => {
    const strange = { fingerprint: `strange-${n}`, hints: [{ from: 'instance', said: `10.99.0.${n}:9100` }] };
    await hear(strange);
    const asked = await question(`10.99.0.${n}`);
    await hear(strange);
    await office.slack.waitFor('the count', () => /Fired 2 times/.test(messageText(asked)));
    await office.slack.actAs(priya).choose(asked, 'reclaim_question_host', host());
    await root(/memory alert/);
    await office.slack.waitFor('the answer to show', () => asked.text.includes('says that it is'));
    await hear(strange);
    await root(/Fired 2 times/);
  });

  it('offers only the hosts it could be, and looks at none of them', async () => {
    await hear({ fingerprint: `two-${n}`, title: `Low memory ${n}`, hints: [], words: [`box-${n}`, `box-${n + 1}`] });
    const asked = await question(`Low memory ${n}`);
    expect(asked.text).toContain(`box-${n}, box-${n + 1}`);
    expect(await incident()).toBeNull();
    await office.slack.actAs(priya).click(asked, 'Dismiss');
    await office.slack.waitFor('the dismissal', () => asked.text.includes('Dismissed by'));
  });
});
