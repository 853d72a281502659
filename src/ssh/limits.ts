/** How long and how much the road waits, tries and holds. Every one of them has an end. */
export interface RoadLimits {
  readonly lookupMs: number;
  readonly dialMs: number;
  /** From TCP to keys agreed. A swapping box can need half a minute just to greet. */
  readonly handshakeMs: number;
  readonly loginMs: number;
  /** From asking for a channel to a started command. ssh2 has no deadline of its own here. */
  readonly channelMs: number;
  readonly keepaliveMs: number;
  readonly keepaliveMisses: number;
  /** How long an unused connection is kept for the next job; 0 = not at all. */
  readonly idleMs: number;
  /** Sessions on one connection; sshd allows 10 by default (MaxSessions). */
  readonly channels: number;
  /** Logins under way at once, in all and to one address (sshd drops some from 10 on: MaxStartups 10:30:100). */
  readonly dials: number;
  readonly dialsPerAddress: number;
  /** First wait before another try; it doubles and is jittered. */
  readonly retryMs: number;
}

export const defaultLimits: RoadLimits = {
  lookupMs: 10_000,
  dialMs: 10_000,
  handshakeMs: 30_000,
  loginMs: 30_000,
  channelMs: 15_000,
  keepaliveMs: 10_000,
  keepaliveMisses: 3,
  idleMs: 0,
  channels: 4,
  dials: 8,
  dialsPerAddress: 3,
  retryMs: 500,
};
