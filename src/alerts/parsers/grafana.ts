/**
 * Grafana's webhooks: unified alerting (the shape of Alertmanager) and the legacy one, which knows a rule and the series
 * that matched it.
 */
import { z } from 'zod';
import { type Alert, aboutOf, fingerprintOf, titleOf } from './alert.ts';
import { alertsAtMost, type Delivery, parseGroup } from './alertmanager.ts';
import { labelHints } from './labels.ts';

const tags = z
  .record(z.string(), z.unknown())
  .nullish()
  .transform((given) => given ?? {});

const legacySchema = z.looseObject({
  state: z.enum(['alerting', 'ok', 'no_data', 'paused', 'pending', 'unknown']),
  ruleName: z.string().nullish(),
  ruleId: z.union([z.number(), z.string()]).nullish(),
  title: z.string().nullish(),
  message: z.string().nullish(),
  tags,
  evalMatches: z
    .array(z.looseObject({ metric: z.string().nullish(), tags }))
    .max(alertsAtMost)
    .nullish(),
});

const textsOf = (given: Record<string, unknown>): Record<string, string> =>
  Object.fromEntries(Object.entries(given).flatMap(([k, v]) => (typeof v === 'string' ? [[k, v]] : [])));

/** Null when it is neither of Grafana's shapes. A rule without data, paused or pending is no alert. */
export function parseGrafana(body: unknown): Delivery | null {
  const unified = parseGroup(body, 'grafana');
  if (unified !== null) return unified;
  const parsed = legacySchema.safeParse(body);
  if (!parsed.success) return null;
  const rule = parsed.data;
  if (rule.state !== 'alerting' && rule.state !== 'ok') return { alerts: [], truncated: 0 };
  const state: Alert['state'] = rule.state === 'ok' ? 'resolved' : 'firing';
  const name = rule.ruleName ?? rule.title ?? 'Grafana alert';
  const id = String(rule.ruleId ?? name);
  const about = aboutOf([name, rule.title ?? '', rule.message ?? ''].join(' '));
  const base = { source: 'grafana' as const, state, title: titleOf(name), about };
  const series = rule.evalMatches ?? [];
  // An "ok" names no series any more: it resolves whatever the rule had reported.
  if (series.length === 0) {
    const hints = labelHints(textsOf(rule.tags));
    return { alerts: [{ ...base, fingerprint: legacyFingerprint(id), hints, words: [] }], truncated: 0 };
  }
  const alerts = series.map((match): Alert => {
    const hints = labelHints({ ...textsOf(rule.tags), ...textsOf(match.tags) });
    // Without tags the metric's name is all there is: often the host, or `name {host: gpu-box-3}`.
    const words = hints.length === 0 ? (match.metric ?? '').split(/[\s{},="']+/).filter((w) => w !== '') : [];
    return { ...base, fingerprint: legacyFingerprint(id), hints, words };
  });
  return { alerts, truncated: 0 };
}

const legacyFingerprint = (ruleId: string): string => fingerprintOf('grafana rule', ruleId);
