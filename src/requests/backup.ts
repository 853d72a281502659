/** The rules of a backup on its way back in, the same for every store. Pure. */
import { ReclaimError } from '../errors.ts';
import { type ChainHead, emptyChain, eventHash } from './chain.ts';
import { isOpen } from './state.ts';
import type { BackupPart } from './store.ts';
import type { AuditEvent } from './types.ts';

export const backupInvalid = (why: string): ReclaimError =>
  new ReclaimError('backup_invalid', `${why} Nothing of it was taken in.`);

/**
 * Checks a piece against the end of the chain it is added to, and answers the end after it. An empty chain takes a backup
 * that begins anywhere, because the oldest events are removed in time. @throws ReclaimError `backup_invalid`
 */
export function headAfter(head: ChainHead, part: BackupPart): { from: ChainHead; to: ChainHead } {
  const open = part.records?.find((record) => isOpen(record.state));
  if (open !== undefined) throw backupInvalid(`Request ${open.id} in the backup is still open.`);
  const [first] = part.events ?? [];
  const begins = first === undefined ? head : { seq: first.seq - 1, hash: first.previousHash };
  if (head.seq !== emptyChain.seq && (begins.seq !== head.seq || begins.hash !== head.hash)) {
    throw backupInvalid('This store has an audit log of its own that the backup does not continue.');
  }
  let to = begins;
  for (const event of part.events ?? []) to = next(to, event);
  return { from: begins, to };
}

function next(head: ChainHead, event: AuditEvent): ChainHead {
  const { hash, ...rest } = event;
  if (event.seq !== head.seq + 1 || event.previousHash !== head.hash || eventHash(rest) !== hash) {
    throw backupInvalid(
      `Event ${event.seq} of the backup does not follow the one before: it is not whole or was changed.`,
    );
  }
  return { seq: event.seq, hash };
}
