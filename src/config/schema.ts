/** The shape of reclaim.yaml and of the environment (DESIGN 4.4). Unknown keys are refused; units are in the names inside. */
import { z } from 'zod';

/** `90s`, `15m`, `2h`, `1d`, `500ms` -> milliseconds. */
export const durationSchema = z
  .string()
  .regex(/^\d+(\.\d+)?(ms|s|m|h|d)$/, 'write a duration like 90s, 15m or 2h')
  .transform((text) => {
    const unitMs = { ms: 1, s: 1000, m: 60_000, h: 3_600_000, d: 86_400_000 };
    const unit = /ms$|[smhd]$/.exec(text)?.[0] as keyof typeof unitMs;
    return Math.round(Number.parseFloat(text) * unitMs[unit]);
  })
  .refine((ms) => ms <= 100 * 366 * 86_400_000, 'a duration is at most a hundred years');

/** For what would never happen, or never end, were it nothing. */
const someTimeSchema = durationSchema.refine((ms) => ms > 0, 'this must be longer than nothing');

/** `8%` -> 8. */
export const percentSchema = z
  .string()
  .regex(/^\d+(\.\d+)?%$/, 'write a share like 8%')
  .transform((text) => Number.parseFloat(text))
  .refine((n) => n >= 0 && n <= 100, 'a share lies between 0% and 100%');

const slackUser = z.string().regex(/^[UW][A-Z0-9]{2,}$/, 'a Slack user id looks like U0123ABCD');
const slackUserOrGroup = z
  .string()
  .regex(/^[UWS][A-Z0-9]{2,}$/, 'a Slack user id looks like U0123ABCD, a user group id like S0123ABCD');
const slackChannel = z.string().regex(/^[CG][A-Z0-9]{2,}$/, 'a Slack channel id looks like C0123ABCD');
const privilege = z.enum(['sudo', 'root', 'none', 'helper']);
const port = z.number().int().min(1).max(65_535);
/** Host names are what people type in chat and what ends up in paths and keys, so they stay plain. */
export const hostNameSchema = z
  .string()
  .regex(/^[A-Za-z0-9]([A-Za-z0-9._-]{0,62})$/, 'a host name has letters, digits, dots, dashes and underscores only');

const connection = {
  user: z
    .string()
    .regex(/^[A-Za-z_][A-Za-z0-9_.-]{0,31}\$?$/, 'not a Unix user name')
    .optional(),
  port: port.optional(),
  identity: z.string().min(1).optional(),
  /** Use the agent at SSH_AUTH_SOCK with the one key whose public half is this file. */
  agentIdentity: z.string().min(1).optional(),
  privilege: privilege.optional(),
  knownHosts: z.array(z.string().min(1)).min(1).optional(),
  sshConfig: z.string().min(1).optional(),
};

const hostSchema = z.strictObject({
  ...connection,
  address: z.string().min(1),
  aliases: z.array(hostNameSchema).default([]),
  groups: z.array(z.string().min(1)).default([]),
  jump: hostNameSchema.optional(),
  /** The name its key is filed under in known_hosts, where that is not the address. */
  hostKeyAlias: z.string().min(1).optional(),
  owner: slackUser.optional(),
});
export type HostSettings = z.infer<typeof hostSchema>;

const protectSchema = z
  .strictObject({
    exe: z.string().min(1).optional(),
    comm: z.string().min(1).optional(),
    unit: z.string().min(1).optional(),
    user: z.string().min(1).optional(),
  })
  .refine((rule) => Object.values(rule).some((v) => v !== undefined), 'name one of exe, comm, unit, user');

const people = z.number().int().min(1).max(10);
export const policySchema = z.strictObject({
  approvers: z.array(slackUserOrGroup).default([]),
  self_approval: z.enum(['never', 'own_processes', 'always']).default('never'),
  required: z
    .strictObject({
      kill: people.default(1),
      kill_others: people.default(2),
      drop_caches: people.default(1),
      remove_files: people.default(1),
    })
    .prefault({}),
  pending_ttl: someTimeSchema.prefault('15m'),
  unused_ttl: someTimeSchema.prefault('2m'),
  grace: durationSchema.prefault('10s'),
  min_age: z
    .strictObject({
      process: durationSchema.prefault('0s'),
      shm: durationSchema.prefault('5m'),
      sysv: durationSchema.prefault('5m'),
    })
    .prefault({}),
  protect: z.array(protectSchema).default([]),
  people: z.record(z.string(), slackUser).default({}),
  break_glass: z.boolean().default(false),
});
export type Policy = z.infer<typeof policySchema>;

const alertsSchema = z.strictObject({
  watch: z
    .strictObject({
      every: someTimeSchema.prefault('60s'),
      available_below: percentSchema.prefault('8%'),
      for: z.number().int().min(1).max(100).default(3),
      recover_above: percentSchema.prefault('15%'),
    })
    .optional(),
  channel: slackChannel.optional(),
  channels_to_read: z.array(slackChannel).default([]),
  reopen_within: durationSchema.prefault('30m'),
  measure_again_after: z.array(durationSchema).max(6).prefault(['1m', '5m', '15m']),
});

/** How long what is kept: requests with their diagnosis and messages, and the audit log, which outlives them. */
const retentionSchema = z
  .strictObject({
    requests: someTimeSchema.prefault('90d'),
    requests_at_most: z.number().int().min(100).max(1_000_000).default(5_000),
    audit: someTimeSchema.prefault('400d'),
  })
  .refine((keep) => keep.audit >= keep.requests, 'keep the audit log at least as long as the requests');
export type Retention = z.infer<typeof retentionSchema>;

export const yamlSchema = z
  .strictObject({
    defaults: z.strictObject(connection).prefault({}),
    hosts: z.record(hostNameSchema, hostSchema).default({}),
    policy: policySchema.prefault({}),
    alerts: alertsSchema.prefault({}),
    retention: retentionSchema.prefault({}),
  })
  .superRefine((yaml, ctx) => {
    const owners = new Map<string, string>();
    for (const [name, host] of Object.entries(yaml.hosts)) {
      for (const said of new Set([name, ...host.aliases])) {
        const key = said.toLowerCase();
        const other = owners.get(key);
        if (other !== undefined && other !== name) {
          ctx.addIssue({ code: 'custom', path: ['hosts', name], message: `"${said}" already names host ${other}` });
        }
        owners.set(key, name);
      }
      if (host.jump !== undefined && yaml.hosts[host.jump] === undefined) {
        ctx.addIssue({ code: 'custom', path: ['hosts', name, 'jump'], message: `there is no host "${host.jump}"` });
      }
    }
  });
export type Yaml = z.infer<typeof yamlSchema>;

export const envSchema = z.object({
  SLACK_BOT_TOKEN: z.string().startsWith('xoxb-', 'a bot token begins with xoxb-').optional(),
  SLACK_APP_TOKEN: z.string().startsWith('xapp-', 'an app token begins with xapp-').optional(),
  SLACK_SIGNING_SECRET: z.string().min(8).optional(),
  SLACK_API_URL: z.url().optional(),
  QUEUE_URL: z
    .string()
    .regex(/^(redis|rediss|postgres|postgresql|pglite):/, 'begins with redis://, rediss://, postgres:// or pglite:')
    .optional(),
  ALERT_WEBHOOK_TOKEN: z.string().min(16, 'use at least 16 characters').optional(),
  HTTP_PORT: z.coerce.number().int().min(0).max(65_535).default(8090),
  HTTP_HOST: z.string().min(1).default('127.0.0.1'),
  QUEUE_VIEW_PORT: z.coerce.number().int().min(0).max(65_535).optional(),
  QUEUE_VIEW_HOST: z.string().min(1).default('127.0.0.1'),
  QUEUE_VIEW_TOKEN: z.string().min(16, 'use at least 16 characters').optional(),
  OTEL_EXPORTER_OTLP_ENDPOINT: z.url().optional(),
  LOG_LEVEL: z.enum(['fatal', 'error', 'warn', 'info', 'debug', 'trace', 'silent']).default('info'),
  RECLAIM_CONFIG: z.string().min(1).optional(),
  RECLAIM_DATA_DIR: z.string().min(1).default('./.reclaim'),
  RECLAIM_SSH_PASSPHRASE: z.string().min(1).optional(),
  SSH_AUTH_SOCK: z.string().min(1).optional(),
});
export type Env = z.infer<typeof envSchema>;

/** One host with every default filled in: what the ssh layer works from. */
export interface HostConfig {
  readonly name: string;
  readonly address: string;
  readonly port: number;
  readonly user: string;
  readonly privilege: 'sudo' | 'root' | 'none' | 'helper';
  readonly identity?: string;
  readonly agentIdentity?: string;
  readonly knownHosts: readonly string[];
  readonly sshConfig?: string;
  /** What nobody wrote in reclaim.yaml, so that the file at `sshConfig` may say it. Absent = everything was written. */
  readonly defaulted?: readonly ('user' | 'port' | 'identity' | 'knownHosts')[];
  readonly hostKeyAlias?: string;
  /** Name of another configured host to go through. */
  readonly jump?: string;
  readonly aliases: readonly string[];
  readonly groups: readonly string[];
  /** Slack user id of the box owner. */
  readonly owner?: string;
}

/** The whole checked configuration. `policyVersion` names exactly this policy; every request records it. */
export interface Config {
  readonly file: string | null;
  readonly env: Env;
  readonly hosts: ReadonlyMap<string, HostConfig>;
  readonly policy: Policy;
  readonly policyVersion: string;
  readonly alerts: Yaml['alerts'];
  readonly retention: Retention;
  readonly dataDir: string;
  readonly queueUrl: string;
}
