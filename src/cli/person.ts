/** Who is at the terminal, in the words of the policy, and what can be known about people without Slack. */
import { userInfo } from 'node:os';
import type { Config } from '../config/schema.ts';
import { ReclaimError } from '../errors.ts';
import type { Directory } from '../requests/directory.ts';
import type { Person } from '../requests/types.ts';

/** The Unix user as policy.people maps it, else `unix:NAME`, which may ask but decide nothing. */
export function personAtTerminal(config: Pick<Config, 'policy'>, unixUser: string = userInfo().username): Person {
  return { id: config.policy.people[unixUser] ?? `unix:${unixUser}` };
}

/**
 * In a terminal the configuration is all there is: whoever policy.people or policy.approvers names is taken for a
 * member; user groups cannot be looked up, and that means no.
 */
export function configDirectory(config: Pick<Config, 'policy'>): Directory {
  const { approvers, people } = config.policy;
  const known = new Set([...approvers, ...Object.values(people)]);
  return {
    person: (id) => Promise.resolve({ id, standing: known.has(id) ? 'member' : 'stranger' }),
    groupMembers: (group) =>
      Promise.reject(
        new ReclaimError(
          'lookup_failed',
          `The members of user group ${group} cannot be looked up from a terminal, so it counts as no. Nothing was done. List the person in policy.approvers, or approve in Slack.`,
        ),
      ),
  };
}
