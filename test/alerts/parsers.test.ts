/** Every way an alert comes in, to a host and a state; and what must never come out of one. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { parseGroup } from '../../src/alerts/parsers/alertmanager.ts';
import { parseGrafana } from '../../src/alerts/parsers/grafana.ts';
import { bareName, hostsCalled, mapHost, type KnownHost } from '../../src/alerts/parsers/hosts.ts';
import { parseMessage, stateOfColor } from '../../src/alerts/parsers/messages.ts';
import { reportOf, reports } from '../memory/report-cases.ts';

const known: KnownHost[] = [
  { name: 'gpu-box-3', aliases: ['node-3', 'trainer.lab.example'], address: '10.0.0.27' },
  { name: 'gpu-box-4', aliases: [], address: 'gpu-box-4.lab.example' },
  { name: 'six', aliases: [], address: '2001:db8::5' },
  { name: 'nat-a', aliases: [], address: '192.0.2.1' },
  { name: 'nat-b', aliases: [], address: '192.0.2.1' },
];

describe('a name in an alert', () => {
  it.each([
    ['gpu-box-3', ['gpu-box-3']],
    ['GPU-Box-3', ['gpu-box-3']],
    ['gpu-box-3:9100', ['gpu-box-3']],
    ['http://gpu-box-3:9100/metrics', ['gpu-box-3']],
    ['gpu-box-3.', ['gpu-box-3']],
    ['gpu-box-3.any.example', ['gpu-box-3']],
    ['node-3', ['gpu-box-3']],
    ['trainer', ['gpu-box-3']],
    ['trainer.lab.example', ['gpu-box-3']],
    ['10.0.0.27:9100', ['gpu-box-3']],
    ['gpu-box-4', ['gpu-box-4']],
    ['gpu-box-4.lab.example', ['gpu-box-4']],
    ['[2001:db8::5]:9100', ['six']],
    ['2001:DB8:0:0:0:0:0:5', ['six']],
    ['192.0.2.1:9100', ['nat-a', 'nat-b']],
    // A full name of another domain contradicts the one on file.
    ['gpu-box-4.evil.example', []],
    ['trainer.evil.example', []],
    ['10.0.0.2', []],
    ['10.0.0.271', []],
    ['10', []],
    ['gpu-box-33', []],
    ['gpu-box', []],
    ['xgpu-box-3', []],
    ['localhost', []],
    ['localhost.localdomain', []],
    ['127.0.0.1:9100', []],
    ['[::1]:9100', []],
    ['gpu-box-3;reboot', []],
    ['$(gpu-box-3)', []],
    ['root@gpu-box-3', []],
    ['-oProxyCommand=x', []],
    ['', []],
    ['a'.repeat(5000), []],
  ])('%s is %j', (said, hosts) => {
    expect(hostsCalled(known, said)).toEqual(hosts);
  });

  it('never becomes anything but a configured host, whatever is sent', () => {
    const names = new Set(known.map((host) => host.name));
    fc.assert(
      fc.property(
        fc.array(fc.record({ from: fc.string(), said: fc.string() })),
        fc.array(fc.string()),
        (hints, words) => {
          const mapped = mapHost(known, { hints, words });
          if (mapped.kind === 'known') expect(names.has(mapped.host)).toBe(true);
          if (mapped.kind === 'several') for (const host of mapped.hosts) expect(names.has(host)).toBe(true);
        },
      ),
    );
  });

  it('survives any text', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'binary' }), (text) => {
        const name = bareName(text);
        expect(name === null || /^[a-z0-9._:-]+$/.test(name)).toBe(true);
      }),
    );
  });
});

describe('which host an alert means', () => {
  const hint = (from: string, said: string) => ({ from, said });
  it.each([
    [
      'a node name over an exporter nobody knows',
      [hint('nodename', 'gpu-box-3'), hint('instance', '10.0.0.5:9100')],
      'gpu-box-3',
    ],
    [
      'an address where the node name says nothing',
      [hint('nodename', 'localhost.localdomain'), hint('instance', '10.0.0.27:9100')],
      'gpu-box-3',
    ],
    ['two names of one host', [hint('nodename', 'node-3'), hint('instance', '10.0.0.27:9100')], 'gpu-box-3'],
    ['nothing but localhost', [hint('nodename', 'localhost')], 'unknown'],
    [
      'a node name that contradicts the address (a clone)',
      [hint('nodename', 'gpu-box-3'), hint('instance', '[2001:db8::5]:9100')],
      'gpu-box-3,six',
    ],
    ['an address two hosts share', [hint('instance', '192.0.2.1:9100')], 'nat-a,nat-b'],
    [
      'an address two hosts share, and the name of one',
      [hint('nodename', 'nat-a'), hint('instance', '192.0.2.1:9100')],
      'nat-a',
    ],
    ['a host nobody configured', [hint('instance', '10.9.9.9:9100')], 'unknown'],
  ])('%s', (_title, hints, expected) => {
    const mapped = mapHost(known, { hints, words: ['gpu-box-4'] });
    const said = mapped.kind === 'known' ? mapped.host : mapped.kind === 'several' ? mapped.hosts.join() : 'unknown';
    expect(said).toBe(expected);
  });
});

const group = (change: Record<string, unknown> = {}) => ({
  ...(reportOf('H14').input['json'] as Record<string, unknown>),
  ...change,
});
const one = (labels: Record<string, unknown>, status = 'firing') => ({
  status,
  labels,
  annotations: {},
  endsAt: '0001-01-01T00:00:00Z',
});

describe('Alertmanager', () => {
  it('reads a firing alert with its host, title and fingerprint; endsAt of the year 1 still fires', () => {
    const [alert] = parseGroup(group(), 'alertmanager')!.alerts;
    expect(alert).toMatchObject({ state: 'firing', fingerprint: '0123456789abcdef', about: 'memory' });
    expect(alert!.title).toBe('HostOutOfMemory: Host out of memory (instance 10.0.0.5:9100)');
    expect(mapHost(known, alert!)).toEqual({ kind: 'known', host: 'gpu-box-3' });
  });

  it('takes each alert of a mixed group for itself, and none of a resolved one as firing', () => {
    const alerts = [one({ instance: 'gpu-box-3:9100' }), one({ instance: 'gpu-box-4:9100' }, 'resolved')];
    expect(parseGroup(group({ alerts }), 'alertmanager')!.alerts.map((a) => a.state)).toEqual(['firing', 'resolved']);
    expect(parseGroup(group({ alerts, status: 'resolved' }), 'alertmanager')!.alerts.map((a) => a.state)).toEqual([
      'resolved',
      'resolved',
    ]);
  });

  it('keeps one fingerprint for firing and resolved where the sender gives none', () => {
    const of = (status: string) =>
      parseGroup(group({ alerts: [one({ b: '1', a: '2' }, status)] }), 'alertmanager')!.alerts[0]!.fingerprint;
    expect(of('firing')).toBe(of('resolved'));
  });

  it.each([
    ['nothing', undefined],
    ['null', null],
    ['a list', []],
    ['no alerts', group({ alerts: undefined })],
    ['a wrong status', group({ status: 'on fire' })],
    ['alerts that are none', group({ alerts: ['x', 1] })],
    ['a negative count', group({ truncatedAlerts: -1 })],
    ['too many alerts', group({ alerts: Array.from({ length: 2001 }, () => one({})) })],
  ])('is not %s', (_title, body) => {
    expect(parseGroup(body, 'alertmanager')).toBeNull();
  });

  it('leaves out labels that are no text, and the text of others stays one short line', () => {
    const alerts = [
      {
        ...one({ instance: { evil: 1 }, nodename: 7, node: 'gpu-box-3' }),
        annotations: { summary: `a\nb\u202e${'x'.repeat(900)}` },
      },
    ];
    const [alert] = parseGroup(group({ alerts, commonLabels: {} }), 'alertmanager')!.alerts;
    expect(alert!.hints).toEqual([
      { from: 'nodename', said: '7' },
      { from: 'node', said: 'gpu-box-3' },
    ]);
    expect(alert!.title).not.toMatch(/[\n\u202e]/);
    expect(Array.from(alert!.title).length).toBeLessThanOrEqual(200);
  });

  it('survives any JSON', () => {
    fc.assert(
      fc.property(fc.jsonValue(), (body) => {
        parseGroup(body, 'alertmanager');
        parseGrafana(body);
        parseMessage(body);
      }),
    );
  });
});

describe('Grafana', () => {
  it('reads unified alerting, which adds to the shape of Alertmanager', () => {
    const alerts = [
      {
        ...one({ alertname: 'Low memory', instance: '10.0.0.27:9100' }),
        values: { A: 3.2 },
        valueString: '[ var=A ]',
        fingerprint: 'f',
      },
    ];
    const delivery = parseGrafana(group({ orgId: 1, title: '[FIRING:1]', state: 'alerting', version: '1', alerts }));
    expect(delivery!.alerts).toMatchObject([{ source: 'grafana', state: 'firing', fingerprint: 'f' }]);
  });

  const legacy = (change: Record<string, unknown>) => ({
    ruleId: 4,
    ruleName: 'RAM on trainers',
    title: '[Alerting] RAM on trainers',
    state: 'alerting',
    evalMatches: [{ value: 97, metric: 'used', tags: { host: 'gpu-box-3' } }],
    tags: {},
    ...change,
  });
  it.each([
    ['alerting, one alert per series', legacy({}), ['firing'], 'gpu-box-3'],
    [
      'a series named by its metric only',
      legacy({ evalMatches: [{ value: 1, metric: 'mem {host: node-3}', tags: null }] }),
      ['firing'],
      'gpu-box-3',
    ],
    ['ok, which names no series any more', legacy({ state: 'ok', evalMatches: [] }), ['resolved'], 'unknown'],
    ['no data', legacy({ state: 'no_data' }), [], null],
    ['paused', legacy({ state: 'paused' }), [], null],
    ['pending', legacy({ state: 'pending' }), [], null],
  ])('reads the legacy webhook: %s', (_title, body, states, host) => {
    const { alerts } = parseGrafana(body)!;
    expect(alerts.map((a) => a.state)).toEqual(states);
    const mapped = alerts[0] === undefined ? null : mapHost(known, alerts[0]);
    expect(mapped?.kind === 'known' ? mapped.host : (mapped?.kind ?? null)).toBe(host);
  });

  it('ends with one fingerprint what it began', () => {
    const [begun] = parseGrafana(legacy({}))!.alerts;
    const [over] = parseGrafana(legacy({ state: 'ok', evalMatches: [] }))!.alerts;
    expect(over!.fingerprint).toBe(begun!.fingerprint);
  });
});

const attachment = (given: Record<string, unknown>) => ({ bot_id: 'B1', text: '', attachments: [given] });
const section = (text: string, fields: string[] = []) => ({
  type: 'section',
  text: { type: 'mrkdwn', text },
  fields: fields.map((f) => ({ type: 'mrkdwn', text: f })),
});

describe('a message of another bot', () => {
  it.each<[string, unknown, string, string]>([
    [
      'Alertmanager, as it comes out of the box',
      attachment({
        color: 'danger',
        title: '[FIRING:1] HostOutOfMemory (10.0.0.27:9100 warning)',
        title_link: 'http://am',
        fallback: 'x',
        text: '',
      }),
      'firing',
      'gpu-box-3',
    ],
    [
      'Alertmanager, resolved',
      attachment({ color: 'good', title: '[RESOLVED] HostOutOfMemory (10.0.0.27:9100 warning)' }),
      'resolved',
      'gpu-box-3',
    ],
    [
      'Alertmanager with labels in its text',
      attachment({
        color: 'danger',
        title: '[FIRING:1] LowMemory',
        text: '*Details:*\n • *instance:* `10.0.0.9:9100`\n • *nodename:* `gpu-box-3`',
      }),
      'firing',
      'gpu-box-3',
    ],
    [
      'Grafana unified',
      attachment({
        color: '#D63232',
        title: '[FIRING:1] Memory (gpu-box-3)',
        text: '**Firing**\n\nValue: A=3\nLabels:\n - alertname = Memory\n - instance = gpu-box-3:9100\nAnnotations:',
        footer: 'Grafana v10.4.1',
      }),
      'firing',
      'gpu-box-3',
    ],
    [
      'Grafana, resolved',
      attachment({ color: '#36a64f', title: '[RESOLVED] Memory (gpu-box-3)', footer: 'Grafana v10' }),
      'resolved',
      'gpu-box-3',
    ],
    [
      'Grafana legacy',
      attachment({ color: '#D63232', title: '[Alerting] RAM on gpu-box-4', text: '' }),
      'firing',
      'gpu-box-4',
    ],
    [
      'Grafana legacy, over',
      attachment({ color: '#36a64f', title: '[OK] RAM on gpu-box-4', text: '' }),
      'resolved',
      'gpu-box-4',
    ],
    [
      'Datadog',
      attachment({
        title: '[Triggered on {host:gpu-box-3}] Memory is low',
        text: 'system.mem.pct_usable over host:gpu-box-3 was <= 0.05',
      }),
      'firing',
      'gpu-box-3',
    ],
    ['Datadog again', attachment({ title: '[Re-Triggered on {host:gpu-box-3}] Memory is low' }), 'firing', 'gpu-box-3'],
    ['Datadog, over', attachment({ title: '[Recovered on {host:gpu-box-3}] Memory is low' }), 'resolved', 'gpu-box-3'],
    [
      'blocks with labelled fields',
      {
        bot_id: 'B1',
        text: '',
        blocks: [
          { type: 'header', text: { type: 'plain_text', text: 'CRITICAL: memory' } },
          section('Memory is low', ['*Host:*\nnode-3', '*Seen:*\n10:00']),
          { type: 'context', elements: [{ type: 'mrkdwn', text: 'sent by gpu-box-4' }] },
        ],
      },
      'firing',
      'gpu-box-3',
    ],
    [
      'rich text',
      {
        bot_id: 'B1',
        text: '',
        blocks: [
          {
            type: 'rich_text',
            elements: [
              {
                type: 'rich_text_section',
                elements: [
                  { type: 'text', text: 'FIRING: swap on ' },
                  { type: 'text', text: 'gpu-box-3' },
                ],
              },
            ],
          },
        ],
      },
      'firing',
      'gpu-box-3',
    ],
    [
      'a link for a host name',
      { bot_id: 'B1', text: '[FIRING] memory on <http://gpu-box-3|gpu-box-3>' },
      'firing',
      'gpu-box-3',
    ],
    [
      'two hosts in running text',
      { bot_id: 'B1', text: 'FIRING: memory on gpu-box-3 and gpu-box-4' },
      'firing',
      'several',
    ],
    [
      'a host nobody knows',
      attachment({
        title: 'PROBLEM: memory',
        color: '#E45959',
        fields: [{ title: 'Host', value: 'gpu-box-9' }],
        text: 'see the runbook of gpu-box-3',
      }),
      'firing',
      'unknown',
    ],
  ])('%s', (_title, message, state, host) => {
    const alert = parseMessage(message);
    expect(alert).toMatchObject({ state, about: 'memory' });
    const mapped = mapHost(known, alert!);
    expect(mapped.kind === 'known' ? mapped.host : mapped.kind).toBe(host);
  });

  it.each<[string, unknown]>([
    ['a greeting', { text: 'Good morning, gpu-box-3 looks fine' }],
    ['a command', { text: '/reclaim gpu-box-3' }],
    ['an approval', { text: 'approve gpu-box-3' }],
    ['no data', attachment({ title: '[No Data] Memory on gpu-box-3' })],
    ['an acknowledgement', attachment({ title: 'Acknowledged: memory on gpu-box-3', color: 'danger' })],
    ['a grey note', attachment({ title: 'memory of gpu-box-3', color: '#cccccc' })],
    ['nothing', {}],
    ['a number', 5],
    ['attachments that are none', { attachments: 'x', blocks: 7, text: ['a'] }],
  ])('is no alert: %s', (_title, message) => {
    expect(parseMessage(message)).toBeNull();
  });

  it.each([
    ['[FIRING:1] LowMemory (gpu-box-3)', '[RESOLVED] LowMemory (gpu-box-3)'],
    ['[Triggered on {host:gpu-box-3}] Memory is low', '[Recovered on {host:gpu-box-3}] Memory is low'],
    ['[Alerting] RAM', '[OK] RAM'],
    ['PROBLEM: High memory utilization', 'RESOLVED: High memory utilization'],
    ['PROBLEM: High memory utilization', 'Resolved in 5m 3s: High memory utilization'],
  ])('keeps one fingerprint from "%s" to "%s"', (begun, over) => {
    expect(parseMessage(attachment({ title: over }))!.fingerprint).toBe(
      parseMessage(attachment({ title: begun }))!.fingerprint,
    );
  });

  it.each([
    ['good', 'resolved'],
    ['danger', 'firing'],
    ['warning', 'firing'],
    ['#009900', 'resolved'],
    ['36a64f', 'resolved'],
    ['#2eb886', 'resolved'],
    ['#E45959', 'firing'],
    ['#FFC859', 'firing'],
    ['#7499FF', null],
    ['#cccccc', null],
    ['red', null],
  ])('reads the colour %s as %s', (color, state) => {
    expect(stateOfColor(color)).toBe(state);
  });

  it('stays quick on hostile text', () => {
    const started = performance.now();
    for (const text of [
      'host:'.repeat(20_000),
      '['.repeat(50_000),
      '<http://'.repeat(10_000),
      `_${' a_'.repeat(20_000)}`,
      '*'.repeat(50_000),
    ])
      parseMessage({ text, attachments: [{ title: text, text }] });
    expect(performance.now() - started).toBeLessThan(2_000);
  });
});

/** Case -> the test above or elsewhere that shows it. */
const shown: Record<string, () => void> = {
  H14: () => {
    const { alerts, truncated } = parseGroup(reportOf('H14').input['json'], 'alertmanager')!;
    expect(truncated).toBe(0);
    expect(alerts.map((a) => [a.state, mapHost(known, a)])).toEqual([['firing', { kind: 'known', host: 'gpu-box-3' }]]);
    // "Several hosts: ask which" is read as: an alert that could mean several is asked about, while each alert of a group
    // that names its own host opens that host's thread.
  },
  H19: () => {
    const alert = parseMessage({ bot_id: 'B1', ...reportOf('H19').input })!;
    expect(alert).toMatchObject({ source: 'netdata', state: 'firing', about: 'memory' });
    expect(mapHost([...known, { name: 'gpu-parent', aliases: [], address: 'x' }], alert)).toEqual({
      kind: 'known',
      host: 'gpu-box-3',
    });
    const words = (status: string) => ({
      ...reportOf('H19').input,
      text: `gpu-box-3 ${status}, \`system.ram\` (_ram_)`,
    });
    expect(parseMessage(words('is critical'))?.state).toBe('firing');
    expect(parseMessage(words('recovered'))?.state).toBe('resolved');
    expect(parseMessage(words('recovered'))?.fingerprint).toBe(alert.fingerprint);
  },
  H20: () => {
    const { attachments } = reportOf('H20').input as { attachments: Record<string, unknown>[] };
    const alert = parseMessage({ bot_id: 'B1', text: '', attachments })!;
    expect(alert).toMatchObject({ source: 'zabbix', state: 'firing', about: 'memory' });
    expect(mapHost(known, alert)).toEqual({ kind: 'known', host: 'gpu-box-3' });
    const over = parseMessage({ bot_id: 'B1', text: '', attachments: [{ color: '#009900', fallback: 'x' }] });
    expect(over?.state).toBe('resolved');
  },
  H22: () => {
    const { instance, nodename } = reportOf('H22').input as { instance: string[]; nodename: string };
    expect(instance.map((said) => hostsCalled(known, said))).toEqual([['gpu-box-3'], ['six'], ['gpu-box-3']]);
    expect(mapHost(known, { hints: [{ from: 'nodename', said: nodename }], words: ['gpu-box-3'] })).toEqual({
      kind: 'unknown',
      said: nodename,
    });
  },
  H23: () => {
    const { status, labels } = reportOf('H23').input as { status: string; labels: Record<string, string> };
    const [alert] = parseGroup(group({ status, alerts: [one(labels, status)] }), 'alertmanager')!.alerts;
    expect(alert!.state).toBe('resolved');
  },
  H24: () => {
    const { event } = reportOf('H24').input as { event: Record<string, unknown> };
    expect(parseMessage(event)).toBeNull();
    expect(parseMessage({ ...event, text: 'approve r123, run /reclaim gpu-box-3 now' })).toBeNull();
  },
};

/** Cases of kind H that are no alerts, and where they are shown. */
const leftOut: Record<string, string> = {
  H03: 'approvers: test/requests/service.test.ts',
  H04: 'who may decide: test/requests/service.test.ts, test/slack/surface.test.ts',
  H06: 'acknowledging and linking to the open request: test/slack/surface.test.ts, bench/ack.ts',
  H08: 'state lives in the store: test/requests/parallel.test.ts',
  H09: 'sockets come and go: test/standin/bolt.test.ts, test/slack/delivery.test.ts',
  H12: 'rate limits and coalescing: test/slack/delivery.test.ts',
  H13: 'a message that was deleted: test/slack/delivery.test.ts',
  H25: 'two deployments on one app: src/presence.ts, test/ops',
};

describe('the public reports about chat and alerts', () => {
  it.each(Object.entries(shown))('%s', (_id, show) => {
    show();
  });

  it('are all shown here, or left out for a reason', () => {
    const all = reports.filter((report) => report.kind === 'H').map((report) => report.id);
    expect([...Object.keys(shown), ...Object.keys(leftOut)].sort()).toEqual(all.sort());
  });
});
