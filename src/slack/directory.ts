/** Who people are, as Slack says at the moment of a click. What cannot be told is an error, and that always means no. */
import type { WebClient } from '@slack/web-api';
import { z } from 'zod';
import type { Clock } from '../clock.ts';
import { ReclaimError } from '../errors.ts';
import type { Directory, PersonFacts } from '../requests/directory.ts';

const userSchema = z.object({
  id: z.string(),
  team_id: z.string().optional(),
  deleted: z.boolean().optional(),
  is_bot: z.boolean().optional(),
  is_restricted: z.boolean().optional(),
  is_ultra_restricted: z.boolean().optional(),
  is_stranger: z.boolean().optional(),
});
const cacheMs = 60_000;

function standing(user: z.infer<typeof userSchema>, clickTeam: string | undefined, homeTeam: string) {
  if (user.deleted === true) return 'deactivated';
  if (user.is_bot === true || user.id === 'USLACKBOT') return 'bot';
  if (user.is_stranger === true) return 'stranger';
  if ((user.team_id ?? homeTeam) !== homeTeam || (clickTeam ?? homeTeam) !== homeTeam) return 'stranger';
  return user.is_restricted === true || user.is_ultra_restricted === true ? 'guest' : 'member';
}

function lookupFailed(what: string, cause: unknown): ReclaimError {
  return new ReclaimError(
    'lookup_failed',
    `Slack did not say ${what}, so the answer is no for now. Nothing was done. Try again in a minute.`,
    { cause },
  );
}

/** A cache whose failures are not kept. */
function cached<T>(clock: Clock, load: (key: string) => Promise<T>): (key: string) => Promise<T> {
  const known = new Map<string, { value: T; until: number }>();
  return async (key) => {
    const hit = known.get(key);
    if (hit !== undefined && hit.until > clock.now()) return hit.value;
    known.delete(key);
    // Counted from before the call: the answer is at least as old as the question.
    const until = clock.now() + cacheMs;
    const value = await load(key);
    if (known.size > 5000) known.clear();
    known.set(key, { value, until });
    return value;
  };
}

export function slackDirectory(client: WebClient, clock: Clock, homeTeam: string): Directory {
  const user = cached(clock, async (id) => {
    const answer = await client.users.info({ user: id });
    return userSchema.parse(answer.user);
  });
  const members = cached(clock, async (group) => {
    const answer = await client.usergroups.users.list({ usergroup: group });
    return z.array(z.string()).parse(answer.users);
  });
  return {
    async person(id, team): Promise<PersonFacts> {
      try {
        return { id, standing: standing(await user(id), team, homeTeam) };
      } catch (error) {
        throw lookupFailed('who you are', error);
      }
    },
    async groupMembers(groupId) {
      try {
        return await members(groupId);
      } catch (error) {
        throw lookupFailed('who is in the approvers’ group', error);
      }
    },
  };
}
