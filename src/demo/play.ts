/** Plays the two people of the demo by itself and prints the channel as it happens. */
import type { LocalSlack } from '../standin/local-slack.ts';
import type { Message } from '../standin/model.ts';
import { isAlive } from './process-facts.ts';
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
  const { slack, leftovers } = world;
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
    if (!mayApprove(card)) return { ok: false, reason: 'The report came without anything to approve. See above.' };
    print(`${people.approver.realName}: clicks Approve, reads the question, confirms\n`);
    await slack.actAs(people.approver.id).click(card, 'Approve', { confirm: true });
    await slack.waitFor('the run to end', () => isFinal(card), {
      timeoutMs: runMs,
      signal,
    });
    await slack.waitFor('the outcome in the thread', () => slack.thread(channel.id, card.ts).length > 1, {
      timeoutMs: runMs,
      signal,
    });
  } catch (thrown) {
    return { ok: false, reason: thrown instanceof Error ? thrown.message : 'The demo ended early.' };
  } finally {
    stop();
  }
  return judge(leftovers);
}

function judge({ processes, lookalikes }: DemoWorld['leftovers']): Played {
  const alive = processes.filter(isAlive);
  const gone = lookalikes.filter((process) => !isAlive(process));
  if (alive.length > 0) {
    return { ok: false, reason: `${alive.length} of ${processes.length} leftover processes are still alive.` };
  }
  if (gone.length > 0)
    return { ok: false, reason: `An innocent process is gone: ${gone.map((p) => p.comm).join(', ')}.` };
  const names = lookalikes.map((process) => process.argv.join(' ')).join('" and "');
  return {
    ok: true,
    reason: `All ${processes.length} leftover processes are gone, and the look-alikes "${names}" are alive.`,
  };
}

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
