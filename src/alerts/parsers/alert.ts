/** What every alert comes down to, whoever sent it. Its text only ever serves to find a configured host and to be shown. */
import { createHash } from 'node:crypto';
import { z } from 'zod';

export const alertSources = ['watch', 'alertmanager', 'grafana', 'netdata', 'zabbix', 'datadog', 'message'] as const;
export type AlertSource = (typeof alertSources)[number];

export const alertSchema = z.object({
  source: z.enum(alertSources),
  state: z.enum(['firing', 'resolved']),
  /** One line of the sender's own words, cut to a readable length: raw text, never markup. */
  title: z.string(),
  /** The same for a firing alert, its repeats and its resolve. */
  fingerprint: z.string(),
  /**
   * Names given in fields made for it (`nodename`, `instance`, `Host`), most telling first. Where there are any, no other
   * text is searched.
   */
  hints: z.array(z.object({ from: z.string(), said: z.string() })),
  /** Single words that could be a host, where no field says it. */
  words: z.array(z.string()),
  /** Whether memory is what it is about, as far as its words tell. */
  about: z.enum(['memory', 'other', 'unsaid']),
});
export type Alert = z.infer<typeof alertSchema>;
export type HostHint = Alert['hints'][number];

export const titleChars = 200;

/** One readable line: controls, line breaks and bidirectional overrides become blanks. */
export function titleOf(text: string): string {
  const line = text
    .slice(0, 4000)
    .replace(/[\p{Cc}\p{Cs}\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]+/gu, ' ')
    .replace(/\s+/g, ' ')
    .trim();
  const chars = Array.from(line);
  return chars.length <= titleChars ? line : `${chars.slice(0, titleChars - 1).join('')}…`;
}

export const fingerprintOf = (...parts: readonly string[]): string =>
  createHash('sha256').update(JSON.stringify(parts)).digest('hex').slice(0, 16);

const memoryWords =
  /\b(?:mem|memory|memfree|memavailable|ram|oom\w*|out[ _-]?of[ _-]?memory|swap\w*|shm|tmpfs|pswp\w*)\b/i;
const otherWords =
  /\b(?:cpu|load|disk|filesystem|inodes?|network|packet|certificate|ssl|tls|http|latency|temperature|fan|raid|smart|ntp|clock|gpu util\w*|link down|unreachable|ping)\b/i;

/** `HostOutOfMemory`, `system.mem.pct_usable` and `node_memory_MemAvailable_bytes` are words too. */
export function aboutOf(text: string): Alert['about'] {
  const spread = text
    .slice(0, 8000)
    .replace(/([a-z])([A-Z])/g, '$1 $2')
    .replace(/[_./]/g, ' ');
  if (memoryWords.test(spread)) return 'memory';
  return otherWords.test(spread) ? 'other' : 'unsaid';
}
