/** What policy needs to know about people. Slack answers it in the gateway; the CLI answers it from the config alone. */

export interface PersonFacts {
  readonly id: string;
  /** Guests, people of other workspaces, deactivated accounts and bots may decide nothing. */
  readonly standing: 'member' | 'guest' | 'stranger' | 'deactivated' | 'bot';
}

export interface Directory {
  /** Rejects with `lookup_failed` when it cannot be told; that always means no. `team` is the workspace the click came from. */
  person(id: string, team: string | undefined): Promise<PersonFacts>;
  /** Members of a user group (S…), cached for at most 60 s. Rejects with `lookup_failed`. */
  groupMembers(groupId: string): Promise<readonly string[]>;
}
