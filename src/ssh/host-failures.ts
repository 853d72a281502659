/** How an answer of the host program can fail, told apart and put into sentences. */
import { ReclaimError } from '../errors.ts';
import { toText, type Frame } from './frames.ts';
import type { RunOutput } from './transport.ts';

const readAgain =
  'What it did is not known. Do not repeat it: look at the box again, its journal and its processes tell what happened.';

/**
 * Nothing of ours came back from a command that began with sudo: did sudo say no, or is there none? In any language: its
 * "no" is status 1 with a sentence, which the host program never ends with before it has begun.
 */
export function sudoRefused(output: RunOutput): boolean {
  if (output.lost || output.timedOut) return false;
  const said = toText(output.stderr);
  return output.code === 1 ? said !== '' : output.code !== 0 && /\bsudo\b/.test(said);
}

/** First words of stderr, for a sentence. */
function said(output: RunOutput): string {
  const text = toText(output.stderr).slice(0, 200);
  return text === '' ? '' : ` It said: ${text}`;
}

/** Nothing of ours came back. */
export function noAnswer(host: string, output: RunOutput, mutating: boolean): ReclaimError {
  if (mutating && (output.lost || output.timedOut)) return cutShort(host, true, output);
  if (output.lost) {
    return new ReclaimError('ssh_closed_early', `${host} closed the connection before it answered. Nothing was done.`);
  }
  if (output.timedOut) {
    return new ReclaimError('ssh_timeout', `${host} did not answer in time. Nothing was changed. Try again.`);
  }
  const text = toText(output.stderr) + toText(output.stdout);
  if (/currently not available|nologin|This account is/i.test(text)) {
    return new ReclaimError(
      'ssh_no_shell',
      `The account on ${host} has no login shell, so the host program could not start. Nothing was done. Give it a shell, or install the helper as its forced command.`,
    );
  }
  if (output.code === 127 || /sh: (command )?not found/.test(text)) {
    return new ReclaimError(
      'ssh_no_shell',
      `${host} has no usable sh for this account. Nothing was done.${said(output)}`,
    );
  }
  const how = output.signal === null ? `status ${output.code ?? 'unknown'}` : `signal ${output.signal}`;
  return new ReclaimError(
    'host_program_failed',
    `The host program did not start on ${host} (${how}). Nothing was done.${said(output)}`,
  );
}

/** The answer began and has no end. */
export function cutShort(host: string, mutating: boolean, output?: RunOutput): ReclaimError {
  if (mutating) {
    const why = output?.timedOut === true ? `${host} did not answer in time` : `The connection to ${host} was lost`;
    return new ReclaimError('ssh_lost', `${why} while it was acting. ${readAgain}`);
  }
  if (output?.timedOut === true) {
    return new ReclaimError(
      'ssh_timeout',
      `${host} did not finish its answer in time. Nothing was changed. Try again.`,
    );
  }
  const why =
    output?.truncated === true
      ? 'is larger than Reclaim reads'
      : 'was cut off on the way, or is none of the host program';
  return new ReclaimError('host_answer_cut', `The answer of ${host} ${why}. Nothing was changed. Try again.`);
}

/** The program ran and declined. Its body is one sentence, or words for the code. */
export function refusedBy(host: string, frame: Frame): ReclaimError {
  const text = toText(frame.body);
  switch (frame.words[0]) {
    case 'busy': {
      const [run = 'unknown', verb = 'something'] = text.split(' ');
      return new ReclaimError(
        'host_busy',
        `Another run of Reclaim (${run}) is at work on ${host} (${verb}). Nothing was done. Wait for it to end, then try again.`,
      );
    }
    case 'rebooted':
      return new ReclaimError(
        'host_rebooted',
        `${host} was restarted since the plan was made. Nothing was done. Look at it again.`,
      );
    case 'bad_request':
      return new ReclaimError('host_program_failed', `${host} refused the request: ${text}. Nothing was done.`);
    default:
      return new ReclaimError('host_program_failed', `${host}: ${text}`);
  }
}
