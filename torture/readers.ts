/** Everything that reads what others wrote, each with good input to spoil and what must hold whatever comes in. */
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { alertSchema } from '../src/alerts/parsers/alert.ts';
import { parseGroup } from '../src/alerts/parsers/alertmanager.ts';
import { parseGrafana } from '../src/alerts/parsers/grafana.ts';
import { type KnownHost, mapHost } from '../src/alerts/parsers/hosts.ts';
import { parseMessage } from '../src/alerts/parsers/messages.ts';
import { importHosts } from '../src/config/import-hosts.ts';
import { loadConfig } from '../src/config/load.ts';
import { hostNameSchema } from '../src/config/schema.ts';
import { diagnosisSchema } from '../src/memory/contract.ts';
import { parseCapture } from '../src/memory/parse-capture.ts';
import { isProtectedName } from '../src/memory/processes/names.ts';
import { redactCapture } from '../src/memory/redact-capture.ts';
import { redactText } from '../src/memory/redact.ts';
import { think } from '../src/memory/think.ts';
import { backupLines, closed, parseBackup } from '../src/requests/backup-lines.ts';
import { chainEvents, emptyChain } from '../src/requests/chain.ts';
import { receiptOf, verifyReceipt } from '../src/requests/receipt.ts';
import { totalsOf } from '../src/requests/totals.ts';
import { isOpen } from '../src/requests/state.ts';
import { parseCommand } from '../src/slack/command-text.ts';
import { readMemory } from '../src/slack/blocks/dialog-memory.ts';
import { readFrames } from '../src/ssh/frames.ts';
import { captureFrom } from '../src/ssh/capture.ts';
import { judgeKey, parseKnownHosts, recordOf } from '../src/ssh/known-hosts.ts';
import { reports } from '../test/memory/report-cases.ts';
import { makeBox } from '../test/memory/box.ts';
import { finishedRun } from './finished-run.ts';

/** How to spoil the good input: its text, its JSON, or both. */
export interface Reader {
  readonly name: string;
  /** How many inputs of this reader cost about as much as others. */
  readonly batch: number;
  readonly good: readonly string[];
  readonly isJson: boolean;
  /** Throws anything but a ReclaimError, or a Breach, when something that must hold does not. */
  read(text: string): void;
}

export class Breach extends Error {}
const must = (holds: boolean, what: string): void => {
  if (!holds) throw new Breach(what);
};

const root = join(import.meta.dirname, '..');
const fixture = (path: string) => readFileSync(join(root, path), 'utf8');
const known: KnownHost[] = [
  { name: 'gpu-box-3', aliases: ['node-3'], address: '10.0.0.27' },
  { name: 'gpu-box-4', aliases: [], address: 'gpu-box-4.lab.example' },
];
const knownNames = new Set(known.map((host) => host.name));

function readAlerts(parse: (body: unknown) => { alerts: readonly unknown[] } | null): (text: string) => void {
  return (text) => {
    for (const alert of parse(quietJson(text))?.alerts ?? []) checkAlert(alert);
  };
}
function checkAlert(given: unknown): void {
  const parsed = alertSchema.safeParse(given);
  must(parsed.success, 'an alert came out that is none');
  if (!parsed.success) return;
  const mapped = mapHost(known, parsed.data);
  const hosts = mapped.kind === 'known' ? [mapped.host] : mapped.kind === 'several' ? mapped.hosts : [];
  must(
    hosts.every((host) => knownNames.has(host)),
    `an alert named ${hosts.join()}, which is not configured`,
  );
}
function quietJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}

function readCapture(text: string): void {
  const capture = parseCapture(text);
  const { diagnosis } = think(capture);
  diagnosisSchema.parse(diagnosis);
  const sum = diagnosis.accounting.reduce((total, c) => total + c.kiB, 0);
  must(sum === diagnosis.memory.totalKiB, `the classes sum to ${sum}, not to ${diagnosis.memory.totalKiB}`);
  const planned = new Set(
    (diagnosis.plan?.steps ?? []).flatMap((s) => (s.action === 'kill' ? s.targets.map((t) => t.pid) : [])),
  );
  const listed = diagnosis.findings.flatMap((f) => f.processes ?? []);
  for (const p of listed) must(!planned.has(p.pid) || !isProtectedName(p.comm), `${p.comm} is on the plan`);
  for (const pid of planned)
    must(
      listed.some((p) => p.pid === pid),
      `pid ${pid} is on the plan and in no finding`,
    );
  for (const pid of capture.collectorPids) must(!planned.has(pid), 'our own connection is on the plan');
  parseCapture(JSON.stringify(redactCapture(capture)));
}

const nonce = '0123456789abcdef0123456789abcdef';
function readAnswer(text: string): void {
  const { frames, ended } = readFrames(Buffer.from(text, 'latin1'), nonce);
  if (!ended) return;
  const capture = captureFrom(frames, { nonce, host: 'box', takenAt: '2026-11-30T20:54:00Z' });
  if (capture !== null) think(capture);
}

// Made when it is needed: every part is loaded in every process.
let folder = '';
const inFolder = (name: string): string => join((folder ||= mkdtempSync(join(tmpdir(), 'reclaim-torture-'))), name);
export const removeReadersFolder = (): void => {
  if (folder !== '') rmSync(folder, { recursive: true });
};
function readConfig(text: string): void {
  writeFileSync(inFolder('reclaim.yaml'), text);
  const { hosts, policy } = loadConfig({ cwd: folder, env: {} });
  for (const name of hosts.keys())
    must(hostNameSchema.safeParse(name).success, `a host is named ${JSON.stringify(name)}`);
  for (const n of Object.values(policy.required)) must(Number.isInteger(n) && n >= 1, `${n} people have to approve`);
  must(policy.grace >= 0 && policy.pending_ttl > 0 && policy.unused_ttl > 0, 'a time of the policy is none');
}
function readEnv(text: string): void {
  writeFileSync(inFolder('.env'), text);
  try {
    loadConfig({ cwd: folder, env: {} });
  } finally {
    writeFileSync(inFolder('.env'), '');
  }
}

const { record, events } = finishedRun();
const chained = chainEvents(emptyChain, events);
const receipt = JSON.stringify(receiptOf(record, chained), null, 1);
const backup = [
  ...backupLines(
    { takenAt: record.updatedAt, records: [record], events: chained, totals: totalsOf([record], chained) },
    '1',
  ),
];
const sameJson = (a: string, b: string) => JSON.stringify(quietJson(a)) === JSON.stringify(quietJson(b));

const cmd = (text: string): void => {
  const command = parseCommand(text);
  if (command.verb !== 'look') return;
  for (const name of [...command.hosts, ...command.groups])
    must(/^[A-Za-z0-9][A-Za-z0-9._@:-]*$/.test(name), `a host ${name}`);
};

const knownHosts = fixture('torture/fixtures/known_hosts');
const otherKey = Buffer.from('AAAAC3NzaC1lZDI1NTE5AAAAIJ8mKQ0hF1n5Z8yq0w1bqN3m8mCqk0m5Yp8xJ3Vt0aXh', 'base64');
const alertmanager = JSON.stringify({
  ...{ version: '4', status: 'firing', receiver: 'reclaim', groupKey: '1', commonLabels: { severity: 'warning' } },
  alerts: [
    {
      status: 'firing',
      labels: { alertname: 'LowMemory', instance: 'gpu-box-4:9100' },
      annotations: { summary: 'low' },
    },
    { status: 'resolved', labels: { alertname: 'HostOutOfMemory', nodename: 'gpu-box-3' }, annotations: {} },
  ],
});
const grafana = JSON.stringify({
  ...{ title: '[Alerting] memory', state: 'alerting', ruleName: 'memory', ruleId: 1, message: 'gpu-box-3 is low' },
  evalMatches: [{ metric: 'm', value: 1, tags: { instance: 'gpu-box-3' } }],
});
const messages = reports
  .filter((r) => r.kind === 'H')
  .map((r) => JSON.stringify({ bot_id: 'B1', text: '', ...r.input }));
const paper = makeBox({ processes: [{ pid: 5000, ppid: 1, comm: 'cicc', argv: ['cicc', '-x'], anonKiB: 400_000 }] });
const text = (blob: unknown) => (typeof blob === 'string' ? blob : '');
const answerText = [
  `\n${nonce} begin 1 collect 0\n`,
  `\n${nonce} lines\n`,
  ...Object.entries(paper.files).flatMap(([path, blob]) =>
    text(blob)
      .split('\n')
      .slice(0, -1)
      .map((l) => `${path}:${l}\n`),
  ),
  ...Object.entries(paper.commands).map(([name, said]) => `\n${nonce} command 0 0 ${name}\n${text(said.stdout)}`),
  `\n${nonce} collector 4711 1\n\n${nonce} end 0\n`,
].join('');

export const readers: readonly Reader[] = [
  {
    ...{ name: 'captures', batch: 4, isJson: true, read: readCapture },
    good: [
      ...['healthy', 'nvidia-garbage', 'page-cache-only'].map((n) =>
        fixture(`test/fixtures/cases/samples/${n}.capture.json`),
      ),
      JSON.stringify(paper),
    ],
  },
  { name: 'host answers', batch: 20, isJson: false, good: [answerText], read: readAnswer },
  {
    name: 'Alertmanager deliveries',
    batch: 300,
    isJson: true,
    good: [alertmanager],
    read: readAlerts((b) => parseGroup(b, 'alertmanager')),
  },
  {
    name: 'Grafana deliveries',
    batch: 300,
    isJson: true,
    good: [grafana, alertmanager],
    read: readAlerts(parseGrafana),
  },
  {
    ...{ name: 'messages of other bots', batch: 300, isJson: true, good: messages },
    read: (said) => {
      const alert = parseMessage(quietJson(said));
      if (alert !== null) checkAlert(alert);
    },
  },
  {
    ...{ name: 'commands', batch: 600, isJson: false, read: cmd },
    good: [
      'gpu-box-3',
      '@train all',
      'silence gpu-box-3 8h',
      'history <http://gpu-box-3|gpu-box-3>',
      'cancel “gpu-box-3”,',
    ],
  },
  {
    name: 'dialog memories',
    batch: 300,
    isJson: true,
    good: ['{"id":"r1","channel":"C1","digest":"ab","page":0,"group":1,"turn":2,"off":"0-79 81"}'],
    read: (t) => void readMemory(t),
  },
  { name: 'reclaim.yaml', batch: 4, isJson: false, good: [fixture('reclaim.example.yaml')], read: readConfig },
  { name: '.env', batch: 20, isJson: false, good: [fixture('.env.example')], read: readEnv },
  {
    ...{ name: 'host lists to import', batch: 40, isJson: false },
    good: [
      'Host gpu-box-3\n  HostName 192.0.2.3\n',
      '[gpu]\nbox ansible_host=192.0.2.3 ansible_port=22\n',
      'all:\n  hosts:\n    box: {ansible_host: 192.0.2.3}\n',
      'box-1\nbox-2\n',
    ],
    read: (t) => {
      for (const { name } of importHosts(t).hosts)
        must(hostNameSchema.safeParse(name).success, `imported ${JSON.stringify(name)}`);
    },
  },
  {
    ...{ name: 'receipts', batch: 40, isJson: true, good: [receipt] },
    read: (t) => {
      if (verifyReceipt(t).problems.length === 0) must(sameJson(t, receipt), 'a changed receipt was called whole');
    },
  },
  {
    ...{ name: 'backups', batch: 40, isJson: false, good: [`${backup.join('\n')}\n`] },
    read: (t) => {
      for (const one of closed(parseBackup(t)).records) must(!isOpen(one.state), 'a request of a backup would be open');
    },
  },
  {
    ...{ name: 'known hosts', batch: 100, isJson: false, good: [knownHosts] },
    read: (t) => {
      const verdict = judgeKey(recordOf(parseKnownHosts(t, 'known_hosts'), 'gpu-box-3'), otherKey);
      must(verdict !== 'trusted' || t.includes(otherKey.toString('base64')), 'a key nobody listed is trusted');
    },
  },
  {
    ...{ name: 'texts to redact', batch: 100, isJson: false },
    good: [
      'curl -H "Authorization: Bearer abcDEF0123456789" --password=hunter2hunter2 https://u:p@x/?token=1 KEY=AKIAABCDEFGHIJKLMNOP',
    ],
    read: (t) => void redactText(t),
  },
];
