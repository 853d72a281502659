/** /reclaim: acknowledged at once, worked on after; every refusal is a private sentence. */
import type { App, RespondFn, SlashCommand } from '@slack/bolt';
import { beginSilence, endSilence, silenceMs } from '../alerts/silences.ts';
import { startSweep } from '../alerts/sweeps.ts';
import { findHost } from '../config/hosts.ts';
import { asReclaimError, ReclaimError } from '../errors.ts';
import { nearest } from '../nearest.ts';
import { checkChannel } from './channels.ts';
import { commandWords, parseCommand, type Command } from './command-text.ts';
import { helpText, historyText, hostsText, statusText } from './lists.ts';
import {
  acknowledge,
  answering,
  isFirst,
  linked,
  linkToCard,
  ownSentence,
  personOf,
  queueWords,
  type Surface,
} from './surface.ts';
import { mrkdwn, plural, type Piece } from './text.ts';
import { mustBeMember } from './alert-actions.ts';

type Look = Extract<Command, { verb: 'look' }>;

/** How many boxes one command may look at: more is a typing mistake, not a wish. */
const hostsAtMost = 50;

export function registerCommands(app: App, surface: Surface): void {
  app.command('/reclaim', async ({ command, ack, respond }) => {
    await acknowledge(surface, () => ack());
    await answering(surface, whisperer(respond), async () => {
      if (!(await isFirst(surface, `command.${command.trigger_id}`))) return;
      await run(surface, command, whisperer(respond));
    });
  });
}

function whisperer(respond: RespondFn) {
  return (text: string) => respond({ response_type: 'ephemeral', replace_original: false, text });
}

async function run(
  surface: Surface,
  command: SlashCommand,
  whisper: (text: string) => Promise<unknown>,
): Promise<void> {
  const { deps } = surface;
  const parsed = parseCommand(command.text);
  switch (parsed.verb) {
    case 'help':
      await whisper(helpText());
      return;
    case 'hosts':
      await whisper(await hostsText(deps));
      return;
    case 'status':
      await whisper(await statusText(surface));
      return;
    case 'history':
      await whisper(await historyText(deps, parsed.host === null ? null : findHost(deps.config, parsed.host).name));
      return;
    case 'cancel':
      await whisper(await cancelHost(surface, command, findHost(deps.config, parsed.host).name));
      return;
    case 'silence':
      await whisper(await silenceHost(surface, command, parsed));
      return;
    case 'wrong':
      throw new ReclaimError('usage', parsed.why);
    case 'look':
      await lookAt(surface, command, parsed, whisper);
  }
}

async function cancelHost(surface: Surface, command: SlashCommand, host: string): Promise<string> {
  const record = await surface.deps.store.openFor(host);
  if (record === null) {
    throw new ReclaimError('request_closed', `There is no open request for ${host}, so there is nothing to cancel.`);
  }
  await surface.deps.requests.cancel(record.id, personOf(command.user_id, command.team_id), 'slack');
  return `The request for ${host} is cancelled. Nothing was done on the box.`;
}

async function silenceHost(
  surface: Surface,
  command: SlashCommand,
  { host: said, durationText }: Extract<Command, { verb: 'silence' }>,
): Promise<string> {
  const host = findHost(surface.deps.config, said).name;
  const by = personOf(command.user_id, command.team_id);
  await mustBeMember(surface, by);
  if (/^(?:off|end|0)$/i.test(durationText)) {
    await endSilence(surface.deps, host, by.id);
    return mrkdwn([`Alerts of ${host} are posted again.`]);
  }
  const silence = await beginSilence(surface.deps, { host, by: by.id, forMs: silenceMs(durationText) });
  const until: Piece = { at: silence.until, style: 'day_time' };
  return mrkdwn([`Alerts of ${host} are silent until `, until, `. They are counted, not posted.`]);
}

/** The first word may be a mistyped command as well as a host: `histroy gpu-box-3`. */
function firstHost({ deps }: Surface, said: string): string {
  try {
    return findHost(deps.config, said).name;
  } catch (error) {
    const word = nearest(said, commandWords);
    if (word === null || asReclaimError(error).userText.includes('Did you mean')) throw error;
    throw new ReclaimError('usage', `There is no host "${said}". Did you mean /reclaim ${word}? Nothing was done.`);
  }
}

/** The hosts a command means, in order, each once. A near miss is a question, never a guess. */
function hostsMeant(surface: Surface, look: Look): string[] {
  const { config } = surface.deps;
  const known = [...config.hosts.values()];
  const grouped = look.groups.flatMap((group) => {
    const members = known.filter((h) => h.groups.some((g) => g.toLowerCase() === group.toLowerCase()));
    if (members.length > 0) return members.map((h) => h.name);
    const near = nearest(group, [...new Set(known.flatMap((h) => h.groups))]);
    throw new ReclaimError(
      'host_unknown',
      `No host is in a group "${group}", so nothing was looked at.${near === null ? '' : ` Did you mean @${near}?`}`,
    );
  });
  const named = look.hosts.map((said, i) => (i === 0 ? firstHost(surface, said) : findHost(config, said).name));
  return [...new Set([...named, ...grouped, ...(look.all ? known.map((h) => h.name) : [])])];
}

async function lookAt(
  surface: Surface,
  command: SlashCommand,
  look: Look,
  whisper: (text: string) => Promise<unknown>,
): Promise<void> {
  const hosts = hostsMeant(surface, look);
  if (hosts.length === 0) throw new ReclaimError('usage', 'No hosts are configured, so there is nothing to look at.');
  const fleet = look.all || look.groups.length > 0;
  if (!fleet && hosts.length > hostsAtMost) {
    throw new ReclaimError(
      'usage',
      `That is ${plural(hosts.length, 'box', 'boxes')}; ${hostsAtMost} at a time is the most. Nothing was done.`,
    );
  }
  await checkChannel(surface.client, command.channel_id);
  if (fleet) {
    await startSweep(surface.deps, {
      requester: personOf(command.user_id, command.team_id),
      channel: command.channel_id,
      asked: [...(look.all ? ['all'] : []), ...look.groups.map((group) => `@${group}`), ...look.hosts].join(' '),
      hosts,
    });
    return;
  }
  const lines: string[] = [];
  for (const host of hosts) {
    const line = await askFor(surface, {
      host,
      channel: command.channel_id,
      person: personOf(command.user_id, command.team_id),
    });
    if (line !== null) lines.push(line);
  }
  if (lines.length > 0) await whisper(lines.slice(0, 20).join('\n'));
}

/** Opens a request, or says which one is open already. Null when the card speaks for itself. */
export async function askFor(
  surface: Surface,
  asked: { host: string; channel: string; person: { id: string; team?: string | undefined }; threadTs?: string },
): Promise<string | null> {
  const { host, channel, person } = asked;
  try {
    const { record, existing } = await surface.deps.requests.ask({
      host,
      requester: personOf(person.id, person.team),
      surface: 'slack',
      channel,
      ...(asked.threadTs === undefined ? {} : { threadTs: asked.threadTs }),
    });
    if (!existing) {
      const waits = await queueWords(surface, `the look at ${host}`);
      return waits === null ? null : ownSentence(waits);
    }
    const link = linked(await linkToCard(surface, record), 'the open request');
    return `${ownSentence(`${host} already has a request by @${record.requester.id} (${record.state}); nothing new was started:`)} ${link}.`;
  } catch (error) {
    const known = asReclaimError(error);
    if (known.code === 'internal') throw error;
    return ownSentence(`${host}: ${known.userText}`);
  }
}
