/** What people meet in Slack: every refusal is private, quick and says what to do; every dialog does what it says. */
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import type { RequestRecord } from '../../src/requests/types.ts';
import type { Message, View } from '../../src/standin/model.ts';
import { systemClock } from '../../src/system-clock.ts';
import { channel, priya, sam } from '../standin/world.ts';
import { openOffice, type Office } from './office.ts';
import { pending } from './records.ts';

let office: Office;
let n = 0;
const host = (): string => `box-${n}`;
beforeAll(async () => {
  const hosts = Array.from({ length: 40 }, (_, i) => `box-${i}`);
  office = await openOffice(systemClock, {
    hosts,
    policy: { approvers: [sam, 'U0FAR'], break_glass: true, people: { bob: priya } },
    slack: {
      rateLimits: false,
      channels: [
        { id: channel, name: 'gpu-boxes' },
        { id: 'C0ELSE', name: 'elsewhere', botIsMember: false },
        { id: 'C0OLD', name: 'old', isArchived: true },
        { id: 'C0SHARED', name: 'shared', isExtShared: true },
        { id: 'C0PRIV', name: 'secret', isPrivate: true, members: [priya], botIsMember: false },
      ],
    },
  });
  await office.startGateway();
}, 60_000);
beforeEach(() => {
  n += 1;
});
afterEach(() => {
  office.broken.queue = false;
  office.broken.store = false;
});
afterAll(async () => {
  await office.close();
});

/** Does it, and returns the one private sentence that came of it. `npm run bench` measures how soon. */
async function privately(person: string, act: () => Promise<unknown>): Promise<string> {
  const before = office.slack.actAs(person).ephemerals().length;
  await act();
  const said = await office.slack.waitFor('a private answer', () => office.slack.actAs(person).ephemerals()[before]);
  return said.text;
}

const command = (line: string, where = channel) =>
  privately(priya, () => office.slack.actAs(priya).command(where, `/reclaim ${line}`));

/** A request of this test's box that waits for approval, with its card in the channel. */
async function waiting(over: Partial<RequestRecord> = {}, processes = 6): Promise<Message> {
  const far = new Date(Date.now() + 600_000).toISOString();
  const record: RequestRecord = {
    ...pending(processes),
    id: `r${n}`,
    host: host(),
    version: 1,
    channel,
    requester: { id: priya },
    pendingUntil: far,
    createdAt: new Date().toISOString(),
    ...over,
  };
  expect((await office.store.create({ record, deliver: ['plan_file', 'card'] })).ok).toBe(true);
  return await office.slack.waitFor('the card', () => cardNow());
}

const cardNow = (): Message | undefined =>
  office.slack.messages(channel).find((m) => m.threadTs === undefined && m.text.startsWith(`${host()}:`));
const whole = (value: unknown): string => JSON.stringify(value);
const recordNow = () => office.store.get(`r${n}`);
const cardSays = (text: string) =>
  office.slack.waitFor(`the card to say ${text}`, () => whole(cardNow()).includes(text) && cardNow());

async function modalAfter(person: string, card: Message, label: string): Promise<View> {
  await office.slack.actAs(person).click(card, label);
  return await office.slack.waitFor('the dialog', () => office.slack.actAs(person).modal());
}

describe('refusals', () => {
  it.each([
    ['an unknown host', 'bxo-3', channel, /no host.*bxo-3.*Did you mean box-3/is],
    ['a mistyped word', 'hlep', channel, /Did you mean \/reclaim help/],
    ['a mistyped word before a host', 'histroy box-39', channel, /Did you mean \/reclaim history/],
    ['a group nobody is in', '@trian', channel, /Did you mean @train/],
    ['a channel the bot is not in', 'box-39', 'C0ELSE', /not in this channel.*\/invite/],
    ['a private channel the bot is not in', 'box-39', 'C0PRIV', /cannot see this conversation.*\/invite/],
    ['an archived channel', 'box-39', 'C0OLD', /archived.*another channel/],
    ['a channel shared with strangers', 'box-39', 'C0SHARED', /another organisation.*own workspace/],
    ['nothing to cancel', 'cancel box-39', channel, /no open request for box-39/],
  ])('say in private and within a second what to do: %s', async (_name, line, where, expected) => {
    const seen = office.slack.messages(channel).length;
    expect(await command(line, where)).toMatch(expected);
    expect(office.slack.messages(channel)).toHaveLength(seen);
    expect(await office.store.openFor('box-39')).toBeNull();
  });

  it('link a second command to the card of the first', async () => {
    const card = await waiting();
    await expect.poll(async () => (await office.store.delivery(`r${n}.card`))?.messageTs).toBe(card.ts);
    const said = await command(host());
    expect(said).toMatch(/already has a request by <@U0PRIYA>/);
    expect(said).toContain(`${card.ts}|the open request>`);
  });

  it('tell who may not approve, and change nothing', async () => {
    const card = await waiting();
    const said = await privately(priya, () => office.slack.actAs(priya).click(card, 'Approve', { confirm: true }));
    expect(said).toMatch(/approve/i);
    const stranger = await privately('U0FAR', () =>
      office.slack.actAs('U0FAR').click(card, 'Approve', { confirm: true }),
    );
    expect(stranger).toMatch(/Nothing was done|not/i);
    expect((await recordNow())?.votes).toEqual([]);
  });

  it('tell that a request has expired, and the card shows it', async () => {
    const card = await waiting({ pendingUntil: new Date(Date.now() - 1000).toISOString() });
    const said = await privately(sam, () => office.slack.actAs(sam).click(card, 'Approve', { confirm: true }));
    expect(said).toMatch(/expired|too late/i);
    await cardSays('expired, nothing was done');
  });

  it('tell that the store is down, for a command and for a click', async () => {
    const card = await waiting();
    office.broken.store = true;
    expect(await command('box-38')).toMatch(/store does not answer.*Try again/);
    const said = await privately(sam, () => office.slack.actAs(sam).click(card, 'Approve', { confirm: true }));
    expect(said).toMatch(/store does not answer.*Try again/);
  });

  it('do not lose a command or an approval while the queue is down: what was recorded stands, and people are told', async () => {
    const both = pending().plan!;
    const plan = { ...both, steps: both.steps.filter((step) => step.action === 'drop_caches') };
    const card = await waiting({ plan, required: 1 });
    office.broken.queue = true;
    const clicked = await privately(sam, () => office.slack.actAs(sam).click(card, 'Approve', { confirm: true }));
    expect(clicked).toMatch(/Approved for .*queue does not answer.*starts by itself/);
    expect((await recordNow())?.state).toBe('approved');
    expect(await command('box-37')).toMatch(/queue does not answer, so the look at box-37 waits.*starts by itself/);
    expect((await office.store.openFor('box-37'))?.state).toBe('draft');
  });

  it('show a box that could not be reached on its card', async () => {
    await office.slack.actAs(priya).command(channel, `/reclaim ${host()}`);
    await office.slack.waitFor('the card', () => cardNow());
    const draft = await office.store.openFor(host());
    const why = `${host()} did not answer within 20 s. Nothing was done. Check that it is up.`;
    await office.deps.requests.lookFailed(draft!.id, 'ssh_timeout', why);
    await cardSays('did not answer within 20 s');
  });
});

describe('decisions', () => {
  it('asks before an approval counts, and names who agreed', async () => {
    const card = await waiting();
    await expect(office.slack.actAs(sam).click(card, 'Approve')).rejects.toThrow(/confirm/i);
    const said = await privately(sam, () => office.slack.actAs(sam).click(card, 'Approve', { confirm: true }));
    expect(said).toContain('counts');
    await cardSays('1 of 2 approved');
    expect(whole(cardNow())).toContain(`<@${sam}>`);
  });

  it('touches no other request of the channel', async () => {
    const neighbour = await waiting();
    const [neighbourId, before] = [`r${n}`, whole(neighbour.blocks)];
    n += 1;
    const card = await waiting({ host: host() });
    const view = await modalAfter(sam, card, 'Deny');
    await office.slack.actAs(sam).submit(view, { reason: 'not this one' });
    await cardSays('denied, nothing was done');
    expect(whole(neighbour.blocks)).toBe(before);
    expect((await office.store.get(neighbourId))?.state).toBe('pending');
    await privately(sam, () => office.slack.actAs(sam).click(neighbour, 'Approve', { confirm: true }));
    expect((await office.store.get(neighbourId))?.votes).toHaveLength(1);
  });

  it('shows the reason of a denial on the card, as plain text', async () => {
    const view = await modalAfter(sam, await waiting(), 'Deny');
    await office.slack.actAs(sam).submit(view, { reason: 'still <!channel> needed' });
    const card = await cardSays('still <!channel> needed');
    expect(whole(card)).not.toContain('"type":"button"');
    expect((await recordNow())?.state).toBe('denied');
  });

  /** Presses a button of the dialog and waits for what it turns into. */
  async function turn(person: string, view: View, button: string, shows: string): Promise<View> {
    await office.slack.actAs(person).click(view, button);
    return await office.slack.waitFor(`the page with ${shows}`, () => {
      const now = office.slack.actAs(person).modal();
      return whole(now).includes(shows) && now;
    });
  }
  const approvedBy = (person: string) =>
    expect.poll(async () => (await recordNow())?.votes.map((v) => v.person), { timeout: 10_000 }).toEqual([person]);

  it('approves all of a plan of more than a hundred when nothing is unticked on any page', async () => {
    await waiting({ required: 1 }, 120);
    const groups = await modalAfter(sam, await cardSays('"reclaim_choose"'), 'Choose');
    const first = await turn(sam, groups, '2. One by one (80)', '1 to 10 of 80');
    const second = await turn(sam, first, 'Next page', '71 to 80 of 80');
    await office.slack.actAs(sam).submit(second);
    await approvedBy(sam);
    expect((await recordNow())?.plan?.steps[0]?.targets).toHaveLength(120);
  });

  it('approves exactly what stayed ticked: a whole group, single processes, another step', async () => {
    await waiting({ required: 1 }, 120);
    const groups = await modalAfter(sam, await cardSays('"reclaim_choose"'), 'Choose');
    const person = office.slack.actAs(sam);
    // Every third process is bob's: positions 1, 2, 4, 5, … are ann's, and 4 is unticked one by one.
    const ann = await turn(sam, groups, '2. One by one (80)', '1 to 10 of 80');
    await person.choose(ann, 'ticks.1', ['1', '2', '5', '7', '8', '10', '11', '13', '14']);
    const later = await turn(sam, ann, 'Next page', '71 to 80 of 80');
    const again = await turn(sam, later, 'Back to the groups', '79 of 80');
    // All of bob's, and the dropping of caches, the last of all.
    await person.submit(again, { 'ticks.0': ['g1'] });
    await approvedBy(sam);
    const { plan } = (await recordNow())!;
    const expected = pending(120).plan!.steps[0]!.targets.filter((_, i) => i % 3 !== 0 && i !== 4);
    expect(plan?.steps.map((step) => step.action)).toEqual(['kill']);
    expect(plan?.steps[0]?.targets).toEqual(expected);
  });

  it('says in the dialog that the plan has changed meanwhile, when a page is turned and when it is submitted', async () => {
    await waiting({ required: 1 }, 120);
    const card = await cardSays('"reclaim_choose"');
    const groups = await modalAfter(sam, card, 'Choose');
    const said = await privately(priya, () => office.slack.actAs(priya).click(card, 'Mine, keep it'));
    expect(said).toContain('(40)');
    await turn(sam, groups, '1. One by one (40)', 'has changed');
    await office.slack.actAs(sam).close(office.slack.actAs(sam).modal()!);
    expect((await recordNow())?.votes).toEqual([]);
  });

  it('refuses an approval in which nothing is ticked', async () => {
    const view = await modalAfter(sam, await waiting({ required: 1 }), 'Choose');
    const answer = await office.slack.actAs(sam).submit(view, { 'ticks.0': [], 'ticks.6': [] });
    expect(answer.outcome).toBe('acked');
    const refused = office.slack.actAs(sam).modal();
    expect(whole(refused)).toContain('Nothing is ticked');
    await office.slack.actAs(sam).close(refused!);
    expect((await recordNow())?.votes).toEqual([]);
  });

  it('offers no approval of a plan that does not fit before its file is in the thread', async () => {
    office.slack.faults.add({ kind: 'server_error', count: 2, method: 'files.getUploadURLExternal' });
    const card = await waiting({}, 60);
    expect(whole(card)).not.toContain('reclaim_approve');
    const open = await cardSays('"reclaim_approve"');
    const replies = office.slack.thread(channel, open.ts);
    expect(whole(replies)).toContain('reclaim-plan-');
  });

  it('takes the owner’s processes out of the plan, and nobody else’s', async () => {
    const card = await waiting();
    expect(await privately(sam, () => office.slack.actAs(sam).click(card, 'Mine, keep it'))).toMatch(/yours|people/);
    expect(await privately(priya, () => office.slack.actAs(priya).click(card, 'Mine, keep it'))).toContain('(2)');
    expect((await recordNow())?.plan?.steps[0]?.targets).toHaveLength(4);
  });

  it('breaks the glass only with a reason, and says so on the card', async () => {
    const view = await modalAfter(sam, await waiting(), 'Break glass');
    await office.slack.actAs(sam).submit(view, { reason: 'the box is on fire' });
    await cardSays('approved, about to start');
    const vote = (await recordNow())?.votes[0];
    expect(vote).toMatchObject({ person: sam, breakGlass: true, reason: 'the box is on fire' });
  });

  it('is cancelled by its requester only', async () => {
    const card = await waiting();
    expect(await privately(sam, () => office.slack.actAs(sam).click(card, 'Cancel'))).toMatch(/only|Deny/i);
    await office.slack.actAs(priya).click(card, 'Cancel');
    await cardSays('cancelled, nothing was done');
  });
});

describe('other ways in', () => {
  it('looks at the box a message names', async () => {
    const alert = office.slack.actAs(priya).say(channel, `${host()} is out of memory`);
    await office.slack.actAs(priya).shortcut('reclaim_look_at', alert);
    const view = await office.slack.waitFor('the dialog', () => office.slack.actAs(priya).modal());
    expect(whole(view)).toContain(host());
    await office.slack.actAs(priya).submit(view, { host: host() });
    await office.slack.waitFor('the card', () => cardNow());
  });

  it('shows every host on the Home tab', async () => {
    await office.slack.actAs(priya).openHome();
    const home = await office.slack.waitFor('Home', () => office.slack.actAs(priya).home());
    for (let i = 0; i < 40; i += 1) expect(whole(home)).toContain(`*box-${i}*`);
    await office.slack.actAs(priya).command(channel, `/reclaim ${host()}`);
    await office.slack.waitFor('the card', () => cardNow());
    await office.slack.actAs(priya).click(home, 'Refresh');
    await office.slack.waitFor('the open request on Home', () => {
      const now = office.slack.actAs(priya).home();
      return whole(now).includes('Open request') && now;
    });
  });
});
