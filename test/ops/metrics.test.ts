/** One catalogue of metrics: what the program counts, what the reference says, what dashboard and alert rules ask for. */
import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join, resolve } from 'node:path';
import { describe, expect, it } from 'vitest';
import { Meters, ownMetrics, sharedMetrics } from '../../src/meters.ts';
import { metricsText } from '../../src/metrics.ts';
import { openSqlStore } from '../../src/requests/store-sql.ts';
import { openPglitePool } from '../../src/sql/pglite-pool.ts';
import { ReclaimError } from '../../src/errors.ts';
import { draftOf, TestClock } from '../requests/fixtures.ts';
import { has } from '../requests/servers.ts';

const root = resolve(import.meta.dirname, '../..');
const read = (path: string) => readFileSync(join(root, path), 'utf8');
const catalogue: Record<string, { type: string; labels: readonly string[] }> = { ...sharedMetrics, ...ownMetrics };
/** Where Prometheus itself adds labels. */
const always = ['instance', 'job', 'le'];

function expressions(): string[] {
  const dashboard = JSON.parse(read('deploy/grafana-dashboard.json')) as { panels: { targets: { expr: string }[] }[] };
  const rules = [...read('deploy/prometheus-rules.yml').matchAll(/^ {8}expr: (?:\|\n((?: {10}.*\n)+)|(.*)\n)/gm)];
  return [...dashboard.panels.flatMap((p) => p.targets.map((t) => t.expr)), ...rules.map((m) => m[1] ?? m[2] ?? '')];
}

/** Names of metrics in an expression, each with the labels it is selected by. */
function usedIn(expr: string): { name: string; labels: string[] }[] {
  return [...expr.matchAll(/\b((?:reclaim|nodejs|process)_[a-z0-9_]+)(?:\{([^}]*)\})?/g)].map((m) => ({
    name: m[1]!,
    labels: [...(m[2] ?? '').matchAll(/(\w+)(?==)/g)].map((l) => l[1]!),
  }));
}

describe('the metrics', () => {
  it('are all in the reference, with their type and labels, and no others are', () => {
    const rows = [...read('docs/reference.md').matchAll(/^\| `(reclaim_\w+)`\s*\| (\w+)\s*\|([^|]*)\|/gm)];
    const documented = rows.map((m) => [m[1], m[2], [...m[3]!.matchAll(/`(\w+)`/g)].map((l) => l[1])]);
    expect(documented).toEqual(Object.entries(catalogue).map(([name, { type, labels }]) => [name, type, [...labels]]));
  });

  it('are what the dashboard and the alert rules ask for, by labels that exist', async () => {
    const real = (await new Meters().registry.getMetricsAsJSON()).map((m) => m.name);
    const all = expressions();
    expect(all.length).toBeGreaterThan(30);
    const used = all.flatMap(usedIn);
    for (const { name, labels } of used) {
      const base = name.replace(/_(bucket|sum|count)$/, '');
      expect(real).toContain(catalogue[base]?.type === 'histogram' ? base : name);
      for (const label of labels) expect([...always, ...(catalogue[base]?.labels ?? [])]).toContain(label);
    }
    for (const expr of all) {
      const known = new Set([
        ...always,
        ...usedIn(expr).flatMap((u) => catalogue[u.name.replace(/_bucket$/, '')]?.labels ?? []),
      ]);
      const by = [...expr.matchAll(/\bby \(([^)]*)\)/g)].flatMap((m) => m[1]!.split(',').map((l) => l.trim()));
      for (const label of by) expect([...known]).toContain(label);
    }
    // What nobody looks at is not worth counting.
    const seen = new Set(used.map((u) => u.name.replace(/_(bucket|sum|count)$/, '')));
    expect(Object.keys(catalogue).filter((name) => !seen.has(name))).toEqual([]);
  });

  it('leave out what cannot be read, say the rest, and never a zero that nobody counted', async () => {
    const clock = new TestClock();
    const pool = await openPglitePool('memory://');
    const store = await openSqlStore({ pool, clock, closePool: () => pool.close() });
    await store.create(draftOf({ id: 'r1', nowMs: clock.ms }));
    clock.ms += 90_000;
    const meters = new Meters();
    const down = () => Promise.reject(new ReclaimError('queue_down', 'no'));
    const nothing = () => Promise.resolve();
    const queue = {
      enqueue: nothing,
      work: nothing,
      schedule: nothing,
      unschedule: nothing,
      ping: nothing,
      close: nothing,
      depths: down,
    };
    const text = await metricsText({ store, queue, clock, meters });
    expect(text).toMatch(/^reclaim_requests_asked_total 1$/m);
    expect(text).toMatch(/^reclaim_requests_open\{state="draft"\} 1$/m);
    expect(text).toMatch(/^reclaim_undelivered_oldest_seconds 90$/m);
    expect(text).not.toMatch(/^reclaim_queue_jobs/m);
    await store.close();
    const without = await metricsText({ store, queue, clock, meters });
    expect(without).not.toMatch(/^reclaim_requests_(asked|open)/m);
    expect(without).toMatch(/^process_cpu_seconds_total /m);
  });

  it('count Slack by method and outcome, as Slack names it, and nothing else that Slack may say', async () => {
    const meters = new Meters();
    const { startLocalSlack } = await import('../../src/standin/local-slack.ts');
    const slack = await startLocalSlack({ people: [], channels: [], botToken: 'xoxb-m', appToken: 'xapp-m' });
    const call = (method: string, token: string) =>
      meters.slackFetch(`${slack.apiUrl}${method}`, { method: 'POST', headers: { authorization: `Bearer ${token}` } });
    expect(await (await call('auth.test', 'xoxb-m')).json()).toMatchObject({ ok: true });
    await call('auth.test', 'xoxb-wrong');
    await slack.close();
    await expect(call('auth.test', 'xoxb-m')).rejects.toThrow();
    const text = await meters.registry.metrics();
    for (const outcome of ['ok', 'invalid_auth', 'network']) {
      expect(text).toContain(`reclaim_slack_calls_total{method="auth.test",outcome="${outcome}"} 1`);
    }
    expect(text).toContain('reclaim_slack_call_seconds_count{method="auth.test"} 3');
  });
});

describe.skipIf(!has('promtool'))('promtool', () => {
  it('accepts the alert rules', () => {
    const said = execFileSync('promtool', ['check', 'rules', join(root, 'deploy/prometheus-rules.yml')]).toString();
    expect(said).toMatch(/SUCCESS: \d+ rules found/);
  });

  it('accepts the queries of the dashboard', () => {
    const rules = expressions().map((expr, n) => ({ record: `reclaim:check_${n}`, expr }));
    const file = join(mkdtempSync(join(tmpdir(), 'reclaim-rules-')), 'rules.json');
    writeFileSync(file, JSON.stringify({ groups: [{ name: 'dashboard', rules }] }));
    const said = execFileSync('promtool', ['check', 'rules', file]).toString();
    rmSync(dirname(file), { recursive: true });
    expect(said).toContain(`${rules.length} rules found`);
  });

  it('finds nothing to complain about in the names, types and helps', async () => {
    const meters = new Meters();
    const text = await meters.registry.metrics();
    const own = text.split(/\n(?=# HELP )/).filter((part) => part.startsWith('# HELP reclaim_'));
    const input = `${own.map((part) => part.trimEnd()).join('\n')}\n`;
    expect(execFileSync('promtool', ['check', 'metrics'], { input }).toString()).toBe('');
  });
});
