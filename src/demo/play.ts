/** Plays the two people of the demo by itself and prints the channel as it happens. */
import { existsSync } from 'node:fs';
import type { LocalSlack } from '../standin/local-slack.ts';
import type { Message } from '../standin/model.ts';
import { isAlive } from './process-facts.ts';
import { situations, type Situation } from './situations.ts';
import { buttonLabels, messageText } from './transcript.ts';
import { channel, hostName, people, type DemoWorld } from './world.ts';

export interface Played {
  readonly ok: boolean;
  /** Why not, or what came of it, in a sentence. */
  readonly reason: string;
}

const lookMs = 60_000;
const runMs = 120_000;

const isCard = (message: Message): boolean => message.botId !== undefined && message.threadTs === undefined;
const mayApprove = (message: Message): boolean => buttonLabels(message).some((label) => label.startsWith('Approve'));
/** No decision left to make, and nothing under way any more. */
const isFinal = (message: Message): boolean =>
  !buttonLabels(message).some((label) => /^(Approve|Deny|Cancel)/.test(label)) &&
  !/^\S+: (queued|looking|approved|running)/.test(message.text);

export async function play(world: DemoWorld, print: (text: string) => void, signal: AbortSignal): Promise<Played> {
  const { slack, box } = world;
  const situation = box.now();
  const { expects } = situations[box.name()];
  const stop = follow(slack, print);
  try {
    const asker = slack.actAs(people.asker.id);
    print(`${people.asker.realName}: /reclaim ${hostName}\n`);
    await asker.command(channel.id, `/reclaim ${hostName}`);
    const card = await slack.waitFor(
      'the report',
      () => slack.messages(channel.id).find((m) => isCard(m) && (mayApprove(m) || isFinal(m))),
      { timeoutMs: lookMs, signal },
    );
    if (expects === 'plan') {
      if (!mayApprove(card)) return { ok: false, reason: 'The report came without anything to approve. See above.' };
      await approve(slack, card, print, signal);
      return judge(situation);
    }
    // Something else on this machine may be worth a plan; the demo touches only what it made itself.
    if (mayApprove(card)) await asker.click(card, 'Cancel', { confirm: true });
    return judge(situation);
  } catch (thrown) {
    return { ok: false, reason: thrown instanceof Error ? thrown.message : 'The demo ended early.' };
  } finally {
    stop();
  }
}

async function approve(slack: LocalSlack, card: Message, print: (text: string) => void, signal: AbortSignal) {
  print(`${people.approver.realName}: clicks Approve, reads the question, confirms\n`);
  const options = { timeoutMs: runMs, signal };
  await slack.actAs(people.approver.id).click(card, 'Approve', { confirm: true });
  // Ending what belongs to others takes two, and a demo without root owns nothing it did not start.
  const isHalfway = (): boolean => mayApprove(card) && /1 of 2/.test(messageText(card));
  await slack.waitFor('the run to begin', () => !mayApprove(card) || isHalfway(), options);
  if (isHalfway()) {
    print(`${people.second.realName}: does the same\n`);
    await slack.actAs(people.second.id).click(card, 'Approve', { confirm: true });
  }
  await slack.waitFor('the run to end', () => isFinal(card), options);
  await slack.waitFor('the outcome in the thread', () => slack.thread(channel.id, card.ts).length > 1, options);
}

function judge({ lingering, innocent, staleFiles }: Situation): Played {
  const alive = lingering.filter(isAlive);
  if (alive.length > 0) {
    return { ok: false, reason: `${alive.length} of ${lingering.length} leftover processes are still alive.` };
  }
  const kept = staleFiles.filter((path) => existsSync(path));
  if (kept.length > 0) return { ok: false, reason: `Still there: ${kept.join(', ')}.` };
  const gone = innocent.filter((process) => !isAlive(process));
  if (gone.length > 0) {
    return { ok: false, reason: `An innocent process is gone: ${gone.map((p) => p.comm).join(', ')}.` };
  }
  const said = [
    ...(lingering.length === 0 ? [] : [`all ${lingering.length} leftover processes are gone`]),
    ...(staleFiles.length === 0 ? [] : [`${staleFiles.join(', ')} is removed`]),
    ...(innocent.length === 0 ? [] : [`the innocent ones are alive (${names(innocent)})`]),
  ];
  return { ok: true, reason: said.length === 0 ? 'Nothing was touched.' : `Now ${said.join(', and ')}.` };
}

const names = (processes: Situation['innocent']): string =>
  [...new Set(processes.map((p) => (p.argv.length > 3 ? p.comm : p.argv.join(' '))))].join(', ');

/** Prints a message whole when it is new or asks for something else, and one line when it only moved on. */
function follow(slack: LocalSlack, print: (text: string) => void): () => void {
  const printed = new Map<string, { stage: string; line: string }>();
  return slack.onChange((change) => {
    if (change.type !== 'message' && change.type !== 'message_changed') return;
    const { message } = change;
    const who = message.onlyFor === undefined ? 'Reclaim' : 'Reclaim (only visible to one person)';
    const place = message.threadTs === undefined ? '' : ' (in the thread)';
    const stage = `${isFinal(message)} ${buttonLabels(message).join('|')}`;
    const line = message.text.split('\n')[0] ?? '';
    const before = printed.get(message.ts);
    printed.set(message.ts, { stage, line });
    if (before === undefined || before.stage !== stage) {
      print(`${who}${place}${before === undefined ? '' : ' (edited)'}:\n${messageText(message)}\n`);
    } else if (before.line !== line) {
      print(`${who}${place} (edited): ${line}\n`);
    }
  });
}
