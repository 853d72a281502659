/**
 * The main job as a team runs it: a real OpenSSH server with an unprivileged login and one sudo rule, Redis, a gateway
 * and a worker in processes of their own. Only Slack is a stand-in.
 */
import { spawn, spawnSync, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { stringify } from 'yaml';
import { makeLeftovers, type Leftovers } from '../../src/demo/leftovers.ts';
import { isAlive } from '../../src/demo/process-facts.ts';
import { buttonLabels, messageText } from '../../src/demo/transcript.ts';
import { startLocalSlack, type LocalSlack } from '../../src/standin/local-slack.ts';
import type { Message } from '../../src/standin/model.ts';
import { has, redisServer, type RedisServer } from '../requests/servers.ts';
import { isRoot, makeKey, makeUser, startSshd, type Sshd, type TestUser } from '../ssh/sshd.ts';

const root = resolve(import.meta.dirname, '../..');
const channel = 'C0GPU';
const ready = [has('sshd'), has('redis-server'), has('sudo')].every(Boolean) && isRoot;
if (!isRoot)
  console.warn('LEFT OUT: the production path needs root here, to make an unprivileged login with a sudo rule');

/** Names of the founding line: none of them may ever be in an argument list of ours. */
const foundingNames = /flash|ptxas|nvcc|cicc|cc1plus|ninja|uv pip/;

describe.skipIf(!ready)('the main job over OpenSSH, sudo and Redis, in processes of their own', () => {
  const folder = mkdtempSync(join(tmpdir(), 'reclaim-e2e-'));
  let user: TestUser, sshd: Sshd, redis: RedisServer, slack: LocalSlack, leftovers: Leftovers;
  const children: ChildProcess[] = [];
  const sudoers = `/etc/sudoers.d/reclaim-e2e-${process.pid}`;

  beforeAll(async () => {
    user = makeUser('/bin/bash');
    writeFileSync(sudoers, `${user.name} ALL=(root) NOPASSWD: /bin/sh -s\n`, { mode: 0o440 });
    const key = makeKey(folder);
    sshd = await startSshd({ authorized: [key.publicKey] });
    writeFileSync(join(folder, 'known_hosts'), sshd.knownHosts());
    redis = await redisServer();
    slack = await startLocalSlack({
      people: ['ana', 'bo', 'chen'].map((name) => ({ id: `U0${name.toUpperCase()}`, name, realName: name })),
      channels: [{ id: channel, name: 'gpu-boxes' }],
      botToken: 'xoxb-e2e',
      appToken: 'xapp-e2e',
    });
    const host = { address: '127.0.0.1', port: sshd.port, user: user.name, identity: key.file, privilege: 'sudo' };
    writeFileSync(
      join(folder, 'reclaim.yaml'),
      stringify({
        defaults: { knownHosts: [join(folder, 'known_hosts')] },
        hosts: { 'gpu-box-3': host },
        policy: { approvers: ['U0BO', 'U0CHEN'], grace: '3s' },
      }),
    );
    leftovers = await makeLeftovers({ totalMiB: 300, cacheMiB: 80 });
    for (const role of ['worker', 'gateway']) children.push(await startServe(role));
    await slack.waitFor('the gateway to connect', () => slack.sockets.count > 0);
  }, 90_000);

  async function startServe(role: string): Promise<ChildProcess> {
    const child = spawn(process.execPath, ['--import', 'tsx', 'src/cli/main.ts', 'serve', '--role', role], {
      cwd: root,
      env: {
        ...process.env,
        RECLAIM_CONFIG: join(folder, 'reclaim.yaml'),
        RECLAIM_DATA_DIR: join(folder, 'data'),
        QUEUE_URL: redis.url,
        HTTP_PORT: '0',
        LOG_LEVEL: 'warn',
        // A worker needs no Slack token, so it gets none.
        ...(role === 'gateway'
          ? { SLACK_BOT_TOKEN: 'xoxb-e2e', SLACK_APP_TOKEN: 'xapp-e2e', SLACK_API_URL: slack.apiUrl }
          : {}),
      },
      stdio: ['ignore', 'ignore', 'pipe'],
    });
    let said = '';
    await new Promise<void>((resolvePromise, reject) => {
      child.stderr.on('data', (chunk: Buffer) => {
        said += chunk.toString();
        if (said.includes(`${role} is up`)) resolvePromise();
      });
      child.once('exit', () => {
        reject(new Error(`serve --role ${role} ended: ${said}`));
      });
    });
    return child;
  }

  afterAll(async () => {
    for (const child of children) {
      child.kill('SIGTERM');
      if (child.exitCode === null && child.signalCode === null) await once(child, 'exit');
    }
    await leftovers.dispose();
    await slack.close();
    await redis.remove();
    await sshd.stop();
    user.remove();
    rmSync(sudoers, { force: true });
    rmSync(folder, { recursive: true, force: true });
  });

  /** Every argument list seen among the children of sshd while the work went on. */
  function watchArguments(): { seen: Set<string>; stop: () => void } {
    const seen = new Set<string>();
    const timer = setInterval(() => {
      for (const line of descendantsOf(sshd.pid)) seen.add(line);
    }, 5);
    return {
      seen,
      stop: () => {
        clearInterval(timer);
      },
    };
  }

  it('looks, asks two people, ends exactly the approved processes, drops caches, and reports what each step gave', async () => {
    const watched = watchArguments();
    await slack.actAs('U0ANA').command(channel, '/reclaim gpu-box-3');
    const card = await slack.waitFor('the plan', () => slack.messages(channel).find((m) => labels(m, 'Approve')), {
      timeoutMs: 60_000,
    });
    expect(messageText(card)).toMatch(/lingering/i);

    // The processes belong to somebody else than the requester, so two people have to agree.
    await slack.actAs('U0BO').click(card, 'Approve', { confirm: true });
    await slack.waitFor('the first vote to show', () => /1 of 2/.test(messageText(card)));
    expect(leftovers.processes.every(isAlive)).toBe(true);
    await slack.actAs('U0CHEN').click(card, 'Approve', { confirm: true });

    await slack.waitFor('the result', () => !labels(card, '') && !/^\S+: (approved|running)/.test(card.text), {
      timeoutMs: 90_000,
    });
    watched.stop();
    const result = messageText(card);
    expect(result).toMatch(/expected/);
    expect(result).toMatch(/measured/);
    expect(leftovers.processes.filter(isAlive)).toEqual([]);
    expect(leftovers.lookalikes.every(isAlive)).toBe(true);
    expect(watched.seen.size).toBeGreaterThan(3);
    expect([...watched.seen].filter((line) => foundingNames.test(line))).toEqual([]);
  }, 150_000);

  it('tells the history from a terminal, over the same Redis', () => {
    const asked = spawnSync(process.execPath, ['--import', 'tsx', 'src/cli/main.ts', 'history', '--json'], {
      cwd: root,
      env: { ...process.env, RECLAIM_CONFIG: join(folder, 'reclaim.yaml'), QUEUE_URL: redis.url },
    });
    expect(asked.status).toBe(0);
    const { requests } = JSON.parse(asked.stdout.toString()) as { requests: { state: string; gaveBackKiB: number }[] };
    expect(requests).toHaveLength(1);
    expect(requests[0]).toMatchObject({ state: 'succeeded' });
    expect(requests[0]!.gaveBackKiB).toBeGreaterThan(200 * 1024);
  });
});

const labels = (message: Message, start: string): boolean =>
  buttonLabels(message).some((label) => label.startsWith(start) && /^(Approve|Deny|Cancel)/.test(label));

function descendantsOf(ancestor: number): string[] {
  const parents = new Map<number, number>();
  for (const name of readdirSync('/proc')) {
    if (!/^\d+$/.test(name)) continue;
    try {
      const stat = readFileSync(`/proc/${name}/stat`, 'utf8');
      parents.set(Number(name), Number(stat.slice(stat.lastIndexOf(')') + 2).split(' ')[1]));
    } catch {
      // It ended between the two reads.
    }
  }
  const below = (pid: number): boolean => {
    const parent = parents.get(pid);
    return parent !== undefined && parent > 1 && (parent === ancestor || below(parent));
  };
  return [...parents.keys()].filter(below).flatMap((pid) => {
    try {
      return [readFileSync(`/proc/${pid}/cmdline`, 'utf8').replaceAll('\0', ' ').trim()];
    } catch {
      return [];
    }
  });
}
