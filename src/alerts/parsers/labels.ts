/** Labels of Prometheus-like alerts: which of them name the box, in the order that tells most. */
import { type HostHint } from './alert.ts';

/** `instance` last: it is where the exporter was scraped, which need not be the box. */
export const hostLabels = ['nodename', 'node', 'hostname', 'host', 'server', 'exported_instance', 'instance'] as const;

export function labelHints(labels: Readonly<Record<string, string>>): HostHint[] {
  return hostLabels.flatMap((from) => {
    const said = Object.hasOwn(labels, from) ? labels[from] : undefined;
    return said === undefined || said.trim() === '' ? [] : [{ from, said }];
  });
}
