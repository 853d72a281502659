/**
 * Every way of not reaching a box, in words: what happened, what was not done, what to do next. One builder per cause,
 * so that two causes never share a sentence. Text a box sent (banners, offers) is cut and stripped before it is shown.
 */
import { ReclaimError, type ErrorCode } from '../errors.ts';
import { fingerprint, keyTypeOf, type NameRecord } from './known-hosts.ts';

/** Where we tried to go. `host` is the name people use, `address` and `port` what was dialled. */
export interface Place {
  readonly host: string;
  readonly address: string;
  readonly port: number;
}

export function placeName({ host, address, port }: Place): string {
  return `${host} (${address} port ${port})`;
}

/** One line of printable text out of whatever a box said, for use inside a sentence. */
export function plainLine(said: string, limit = 160): string {
  const line = said.replace(/[\u0000-\u001f\u007f-\u009f\u200b-\u200f\u2028-\u202e\u2066-\u2069]+/g, ' ').trim();
  const codePoints = Array.from(line);
  return codePoints.length > limit ? `${codePoints.slice(0, limit).join('')}…` : line;
}

const nothing = 'Nothing was done there.';

function failure(code: ErrorCode, what: string, next: string, cause?: unknown): ReclaimError {
  return new ReclaimError(code, `${what} ${nothing} ${next}`, { cause });
}

const seconds = (ms: number) => `${Math.round(ms / 100) / 10} s`;

/** From the error of a name look-up or a TCP connect (or of the several connects of one name). */
export function dialFailure(place: Place, thrown: unknown): ReclaimError {
  const first: unknown = thrown instanceof AggregateError ? thrown.errors[0] : thrown;
  const code = first instanceof Error && 'code' in first && typeof first.code === 'string' ? first.code : '';
  const at = placeName(place);
  switch (code) {
    case 'ENOTFOUND':
    case 'EAI_AGAIN':
    case 'EAI_FAIL':
    case 'EAI_NODATA':
    case 'EAI_NONAME':
      return failure(
        'ssh_name_unresolved',
        `The name ${place.address} of ${place.host} does not resolve to an address here (${code}).`,
        'Check the address of that host in reclaim.yaml and the DNS of the machine Reclaim runs on, then try again.',
        thrown,
      );
    case 'ECONNREFUSED':
      return failure(
        'ssh_refused',
        `${at} refused the connection: it is up, but nothing listens on that port.`,
        'Check that sshd runs there and that the port in reclaim.yaml is right, then try again.',
        thrown,
      );
    case 'ETIMEDOUT':
      return dialTimeout(place, undefined, thrown);
    case 'ECONNRESET':
    case 'EPIPE':
    case 'ECONNABORTED':
      return closedEarly(place, thrown);
    default:
      return failure(
        'ssh_unreachable',
        `There is no way to ${at} from here (${code === '' ? 'unknown network error' : code}).`,
        'Check that the box is powered on and that network, VPN and firewall let Reclaim through, then try again.',
        thrown,
      );
  }
}

export function lookupTimeout(place: Place, ms: number): ReclaimError {
  return failure(
    'ssh_name_unresolved',
    `Looking up the name ${place.address} of ${place.host} gave no answer within ${seconds(ms)}.`,
    'Check the DNS of the machine Reclaim runs on, then try again.',
  );
}

export function dialTimeout(place: Place, ms?: number, cause?: unknown): ReclaimError {
  return failure(
    'ssh_timeout',
    `${placeName(place)} did not answer a connection attempt${ms === undefined ? '' : ` within ${seconds(ms)}`}.`,
    'Check that the box is powered on and that no firewall drops the way to it, then try again.',
    cause,
  );
}

/** TCP is up, sshd is silent: the usual sign of a box that swaps or is frozen, so told apart from "not there". */
export function stalled(place: Place, stage: 'greeting' | 'handshake' | 'login' | 'channel', ms: number): ReclaimError {
  const did = {
    greeting: 'accepted the connection, but its sshd said nothing',
    handshake: 'began the ssh handshake, but did not finish it',
    login: 'took the login, but did not decide on it',
    channel: 'is logged in to, but started no command',
  }[stage];
  return failure(
    'ssh_stalled',
    `${placeName(place)} ${did} within ${seconds(ms)}. A box that is out of memory and swapping looks like this.`,
    'Try again in a minute; if it stays so, someone has to look at its console.',
  );
}

export function closedEarly(place: Place, cause?: unknown): ReclaimError {
  return failure(
    'ssh_closed_early',
    `${placeName(place)} closed the connection before the login was done. It may have too many logins under way ` +
      '(MaxStartups), be blocking this address for a while after failed logins, or be out of memory.',
    'Try again in a minute; if it stays so, look into the log of its sshd.',
    cause,
  );
}

/** The login worked, and the session died before a shell ran. */
export function sessionDied(place: Place, cause?: unknown): ReclaimError {
  return failure(
    'ssh_closed_early',
    `${placeName(place)} accepted the login and then closed the connection before a shell could start. ` +
      'A box with no memory left for one more process does this.',
    'Try again in a minute; if it stays so, someone has to look at its console.',
    cause,
  );
}

export function outOfMemory(place: Place, said: string): ReclaimError {
  return failure(
    'ssh_out_of_memory',
    `${placeName(place)} accepts the login but cannot start a shell: it has no memory left ("${plainLine(said, 80)}"). ` +
      'What holds the memory could not be read.',
    'Try again in 30 seconds; if it stays so, someone has to look at its console.',
  );
}

export function keyRefused(
  place: Place,
  verdict: 'unknown' | 'changed' | 'revoked',
  record: NameRecord,
  key: Buffer,
): ReclaimError {
  const shown = `${keyTypeOf(key) ?? 'unknown type'} ${fingerprint(key)}`;
  const at = placeName(place);
  if (verdict === 'revoked') {
    const line = record.revoked.find((l) => l.key.equals(key));
    return failure(
      'ssh_host_key_revoked',
      `${at} showed a host key that is marked @revoked in ${where(line)}: ${shown}. The connection was refused.`,
      'Do not connect: someone may be posing as this box. Ask its administrator for the key it should have.',
    );
  }
  if (verdict === 'changed') {
    const line = record.trusted[0];
    const filed = line === undefined ? '' : ` (${line.keyType} ${fingerprint(line.key)})`;
    return failure(
      'ssh_host_key_changed',
      `${at} showed another host key than the one on file. It showed ${shown}; on file for "${record.name}" in ` +
        `${where(line)} is another${filed}. The box was reinstalled, or this is not the box.`,
      `Ask its administrator which key is right. If the new one is, remove the old line with ` +
        `ssh-keygen -R '${record.name}' -f ${line?.file ?? 'known_hosts'}, then run: reclaim trust ${place.host}`,
    );
  }
  const authority =
    record.authorities.length === 0
      ? ''
      : ` A @cert-authority line covers the name, but host certificates are not supported here.`;
  return failure(
    'ssh_host_key_unknown',
    `The host key of ${at} is not on file for "${record.name}", so the connection was refused. It showed ${shown}.${authority}`,
    `Compare that fingerprint with the box, then run: reclaim trust ${place.host}`,
  );
}

function where(line: { readonly file: string; readonly line: number } | undefined): string {
  return line === undefined ? 'known_hosts' : `${line.file} line ${line.line}`;
}

/** The handshake found nothing in common. `offered` is the box's own list, where it was seen. */
export function noSharedAlgorithm(place: Place, what: string, offered: string, record: NameRecord): ReclaimError {
  const theirs = offered === '' ? '' : ` It offers: ${plainLine(offered)}.`;
  const known = [...new Set(record.trusted.map((line) => line.keyType))];
  const modern = /ed25519|ecdsa|rsa-sha2/.test(offered);
  if (what === 'host key format' && known.length > 0 && modern) {
    return failure(
      'ssh_host_key_changed',
      `${placeName(place)} no longer has a host key of the type on file for "${record.name}" (${known.join(', ')}).${theirs} ` +
        'The box was reinstalled, or this is not the box.',
      `Ask its administrator. If it is right, remove the old line with ssh-keygen -R '${record.name}' ` +
        `-f ${record.trusted[0]?.file ?? 'known_hosts'}, then run: reclaim trust ${place.host}`,
    );
  }
  return failure(
    'ssh_no_shared_algorithm',
    `${placeName(place)} and Reclaim have no ${what} in common.${theirs}`,
    'Old SHA-1 algorithms are not switched on silently: let the box offer a current one (an ed25519 host key, for example).',
  );
}

export function authFailed(
  place: Place,
  user: string,
  identity: string,
  facts: { readonly methods: readonly string[]; readonly partial: boolean; readonly banner: string },
): ReclaimError {
  const said = facts.banner === '' ? '' : ` It says: "${plainLine(facts.banner)}".`;
  if (facts.partial) {
    return failure(
      'ssh_auth_failed',
      `${placeName(place)} accepted ${identity} for user ${user}, but asks for a second proof as well ` +
        `(${facts.methods.map((m) => plainLine(m, 30)).join(', ')}), which a bot cannot give.${said}`,
      'Let that account log in with the key alone, then try again.',
    );
  }
  return failure(
    'ssh_auth_failed',
    `${placeName(place)} refused the login of user ${user} with ${identity}.${said}`,
    `Check that the key is in the authorized_keys of ${user} on the box and that the account is not locked. ` +
      'It was tried once only, because boxes block addresses that fail often.',
  );
}

export function protocolError(place: Place, cause: Error): ReclaimError {
  return failure(
    'ssh_closed_early',
    `The ssh connection to ${placeName(place)} broke down before the login was done ("${plainLine(cause.message, 100)}").`,
    'Check that the port belongs to an ssh server, then try again.',
    cause,
  );
}

export function busy(place: Place, cause?: unknown): ReclaimError {
  return failure(
    'ssh_busy',
    `${placeName(place)} is logged in to, but refused one more session (MaxSessions).`,
    'Try again in a minute, or raise MaxSessions in its sshd_config.',
    cause,
  );
}

export function execRefused(place: Place, user: string, cause?: unknown): ReclaimError {
  return failure(
    'ssh_exec_refused',
    `${placeName(place)} let user ${user} log in, but refused to run a command.`,
    'Allow commands for that key or account (no internal-sftp, no restricting command= in authorized_keys), then try again.',
    cause,
  );
}

export function noShell(place: Place, user: string): ReclaimError {
  return failure(
    'ssh_no_shell',
    `The account ${user} on ${placeName(place)} has no usable login shell (nologin).`,
    `Give it one, for example with: usermod -s /bin/sh ${user}`,
  );
}

/** The jump host is fine; the way onwards from it is not. `reason` as in RFC 4254 5.1. */
export function forwardFailure(jump: Place, target: Place, thrown: Error): ReclaimError {
  const reason = 'reason' in thrown && typeof thrown.reason === 'number' ? thrown.reason : 0;
  const said = plainLine(thrown.message.replace(/^\(SSH\) Channel open failure: */, ''), 80);
  if (reason === 1) {
    return failure(
      'ssh_exec_refused',
      `The jump host ${placeName(jump)} does not allow going on to ${placeName(target)} ("${said}").`,
      'Set AllowTcpForwarding (and PermitOpen) for the account there, then try again.',
      thrown,
    );
  }
  const code = /refused/i.test(said)
    ? 'ssh_refused'
    : /timed out/i.test(said)
      ? 'ssh_timeout'
      : /resolve|not known/i.test(said)
        ? 'ssh_name_unresolved'
        : 'ssh_unreachable';
  return failure(
    code,
    `The jump host ${placeName(jump)} could not reach ${placeName(target)} ("${said}").`,
    'Check the address as the jump host sees it, and that sshd runs there, then try again.',
    thrown,
  );
}
