/** What a delivery looks like as a Redis hash: text fields, times in milliseconds. */
import { z } from 'zod';
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
