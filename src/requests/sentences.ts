/** The sentences that say where a request stands, for those who come too late or too early. Free of markup. */
import type { ErrorCode } from '../errors.ts';
import { personToken, type RequestRecord } from './types.ts';

/** `@U1`, `@U1 and @U2`, `@U1, @U2 and @U3`. */
export function peopleInWords(ids: readonly string[]): string {
  const tokens = [...new Set(ids)].map(personToken);
  const last = tokens.at(-1);
  if (last === undefined) return 'nobody';
  return tokens.length === 1 ? last : `${tokens.slice(0, -1).join(', ')} and ${last}`;
}

export const peopleCount = (n: number): string => (n === 1 ? '1 person' : `${n} people`);

/** The distinct people whose approval counts for the digest as it is now. */
export function approversOf(record: RequestRecord): string[] {
  const counted = record.votes.filter((v) => v.verdict === 'approve' && v.digest === record.digest);
  return [...new Set(counted.map((v) => v.person))];
}

const askAgain = (record: RequestRecord) => `Ask again with /reclaim ${record.host} to look anew.`;

function approvedSentence(record: RequestRecord, then: string): string {
  const people = approversOf(record);
  return people.length === 0 ? record.reason : `Already approved by ${peopleInWords(people)}; ${then}.`;
}

/** Why nothing can be decided about this request any more (or yet), and who was first. */
export function whyClosed(record: RequestRecord): { code: ErrorCode; text: string } {
  switch (record.state) {
    case 'draft':
      return {
        code: 'request_changed',
        text: `The look at ${record.host} is not finished, so there is nothing to decide yet. Wait for the report.`,
      };
    case 'pending':
      return { code: 'request_changed', text: 'The request changed a moment ago. Look at it again.' };
    case 'approved':
      return { code: 'request_closed', text: approvedSentence(record, 'it is about to run') };
    case 'running':
      return { code: 'request_closed', text: approvedSentence(record, 'it is running now') };
    case 'succeeded':
    case 'failed':
    case 'unknown':
      return { code: 'request_closed', text: approvedSentence(record, 'it has ended') };
    case 'expired':
      return { code: 'expired', text: `This request has expired and nothing was done. ${askAgain(record)}` };
    case 'denied': {
      const by = record.votes.filter((v) => v.verdict === 'deny').map((v) => v.person);
      return { code: 'request_closed', text: `Already denied by ${peopleInWords(by)}. Nothing was done.` };
    }
    case 'cancelled':
    case 'superseded':
    case 'blocked':
      return { code: 'request_closed', text: `${record.reason} ${askAgain(record)}` };
  }
}
