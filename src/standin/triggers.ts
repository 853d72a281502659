/** Trigger ids (one use, three seconds) and response addresses (five uses, thirty minutes). */
import { randomBytes } from 'node:crypto';
import { SlackRefusal } from './model.ts';

export const triggerLifeMs = 3_000;
const responseLifeMs = 30 * 60_000;
const responseUses = 5;

interface Trigger {
  readonly person: string;
  readonly madeAtMs: number;
  used: boolean;
}

export interface ResponseAddress {
  readonly person: string;
  readonly channel: string;
  readonly messageTs?: string;
  readonly threadTs?: string;
  readonly isEphemeral: boolean;
  readonly madeAtMs: number;
  uses: number;
}

export class Triggers {
  readonly #triggers = new Map<string, Trigger>();
  readonly #addresses = new Map<string, ResponseAddress>();

  open(person: string): string {
    const id = `${Date.now()}.${randomBytes(6).toString('hex')}`;
    this.#triggers.set(id, { person, madeAtMs: Date.now(), used: false });
    return id;
  }

  /** Spends the trigger and says whose it was. */
  spend(id: string): string {
    const trigger = this.#triggers.get(id);
    if (trigger === undefined) throw new SlackRefusal('invalid_trigger_id');
    if (trigger.used) throw new SlackRefusal('exchanged_trigger_id');
    if (Date.now() - trigger.madeAtMs > triggerLifeMs) throw new SlackRefusal('expired_trigger_id');
    trigger.used = true;
    return trigger.person;
  }

  openAddress(address: Omit<ResponseAddress, 'madeAtMs' | 'uses'>): string {
    const key = randomBytes(12).toString('hex');
    this.#addresses.set(key, { ...address, madeAtMs: Date.now(), uses: 0 });
    return key;
  }

  /** Counts one use. Answers the word Slack answers when the address is spent. */
  useAddress(key: string): ResponseAddress | 'used_url' | 'expired_url' {
    const address = this.#addresses.get(key);
    if (address === undefined || Date.now() - address.madeAtMs > responseLifeMs) return 'expired_url';
    if (address.uses >= responseUses) return 'used_url';
    address.uses += 1;
    return address;
  }
}
