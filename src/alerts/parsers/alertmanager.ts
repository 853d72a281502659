/**
 * Alertmanager's webhook, version 4, and Grafana's unified alerting, which sends the same shape with more in it
 * (prometheus.io/docs/alerting/latest/configuration/#webhook_config). `endsAt` of the year 1 means "still firing", so only
 * `status` is read for the state.
 */
import { z } from 'zod';
import { type Alert, aboutOf, fingerprintOf, titleOf } from './alert.ts';
import { labelHints } from './labels.ts';

/** Labels are strings; some senders put numbers there. Anything else is left out. */
const labels = z
  .record(z.string(), z.unknown())
  .nullish()
  .transform((given): Record<string, string> => {
    const kept = Object.entries(given ?? {}).flatMap(([key, value]) =>
      typeof value === 'string' || typeof value === 'number' ? [[key, String(value)]] : [],
    );
    return Object.fromEntries(kept) as Record<string, string>;
  });
const status = z.enum(['firing', 'resolved']);

export const alertsAtMost = 2000;

export const groupSchema = z.looseObject({
  status,
  truncatedAlerts: z.number().int().nonnegative().nullish(),
  commonLabels: labels,
  commonAnnotations: labels,
  alerts: z
    .array(
      z.looseObject({
        status,
        labels,
        annotations: labels,
        fingerprint: z.string().max(200).nullish(),
      }),
    )
    .max(alertsAtMost),
});

export interface Delivery {
  readonly alerts: readonly Alert[];
  /** How many more the sender cut off: they exist, and we do not know their hosts. */
  readonly truncated: number;
}

/** Null when it is no such delivery. */
export function parseGroup(body: unknown, source: 'alertmanager' | 'grafana'): Delivery | null {
  const parsed = groupSchema.safeParse(body);
  if (!parsed.success) return null;
  const group = parsed.data;
  const alerts = group.alerts.map((one): Alert => {
    const all = { ...group.commonLabels, ...one.labels };
    const notes = { ...group.commonAnnotations, ...one.annotations };
    const name = all['alertname'] ?? 'alert';
    const said = notes['summary'] ?? notes['title'] ?? notes['description'] ?? notes['message'];
    const sorted = Object.entries(one.labels).sort(([a], [b]) => (a < b ? -1 : 1));
    return {
      source,
      // A resolved group holds nothing that fires, whatever its parts say.
      state: group.status === 'resolved' ? 'resolved' : one.status,
      title: titleOf(said === undefined ? name : said.includes(name) ? said : `${name}: ${said}`),
      fingerprint: one.fingerprint ?? fingerprintOf(source, ...sorted.flat()),
      hints: labelHints(all),
      words: [],
      about: aboutOf([name, ...Object.values(notes)].join(' ')),
    };
  });
  return { alerts, truncated: group.truncatedAlerts ?? 0 };
}
