/** How rows look as Redis hashes: text fields, times in milliseconds. */
import { z } from 'zod';
import type { Totals } from './totals.ts';
import { deliverySchema } from './types.ts';

const iso = z
  .string()
  .optional()
  .transform((ms) => (ms === undefined ? undefined : new Date(Number(ms)).toISOString()));
export const deliveryHash = z
  .looseObject({
    revision: z.coerce.number(),
    deliveredRevision: z.coerce.number(),
    attempts: z.coerce.number(),
    notBefore: iso,
    claimedUntil: iso,
  })
  .transform((hash) => deliverySchema.parse(hash));

/** Never empty, because Redis has no empty hash. */
export function hashOf(totals: Totals): Record<string, string> {
  const hash: Record<string, string> = { none: '0' };
  for (const [name, count] of Object.entries(totals)) hash[name] = String(count);
  return hash;
}
