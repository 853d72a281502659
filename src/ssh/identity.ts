/** Who Reclaim is to a box: exactly one key, from a file or out of the agent, checked before anything is dialled. */
import { readFile, stat } from 'node:fs/promises';
import ssh2, { type OpenSSHAgent, type ParsedKey } from 'ssh2';
import { ReclaimError } from '../errors.ts';
import type { Identity } from './login.ts';

export interface IdentitySource {
  /** Private key file. */
  readonly identity?: string | undefined;
  /** Public key file naming the one key to use out of the agent; wins over `identity`. */
  readonly agentIdentity?: string | undefined;
}

export interface IdentitySettings {
  /** SSH_AUTH_SOCK */
  readonly agentSocket?: string | undefined;
  /** RECLAIM_SSH_PASSPHRASE, for an encrypted key file. */
  readonly passphrase?: string | undefined;
}

export type LoadIdentity = (host: string, source: IdentitySource) => Promise<Identity>;

/** Decrypting a key takes ssh2 a third of a second with the event loop held, so a file is parsed once until it changes. */
export function createIdentities(settings: IdentitySettings): LoadIdentity {
  const parsed = new Map<string, { readonly version: string; readonly key: ParsedKey }>();
  return async (host, source) => {
    if (source.agentIdentity !== undefined) return await fromAgent(host, source.agentIdentity, settings.agentSocket);
    if (source.identity === undefined) {
      throw unusable(host, 'no ssh key is configured', 'Set "identity" or "agentIdentity" for it in reclaim.yaml.');
    }
    const file = source.identity;
    const { text, version } = await read(host, file);
    let known = parsed.get(file);
    if (known?.version !== version) {
      known = { version, key: parsePrivate(host, file, text, settings.passphrase) };
      parsed.set(file, known);
    }
    const { key } = known;
    return { says: `the key ${file}`, method: (username) => ({ type: 'publickey', username, key }) };
  };
}

function unusable(host: string, what: string, next: string, cause?: unknown): ReclaimError {
  return new ReclaimError(
    'ssh_key_unusable',
    `Cannot log in to ${host}: ${what}. Nothing was sent to it. ${next}`,
    cause === undefined ? {} : { cause },
  );
}

async function read(host: string, file: string): Promise<{ text: Buffer; version: string }> {
  try {
    const { mtimeMs, size, ino } = await stat(file);
    return { text: await readFile(file), version: `${ino}:${size}:${mtimeMs}` };
  } catch (cause) {
    const missing = cause instanceof Error && 'code' in cause && cause.code === 'ENOENT';
    throw unusable(
      host,
      missing ? `there is no key file ${file}` : `the key file ${file} cannot be read`,
      'Check the path in reclaim.yaml, and the owner and mode of the file.',
      cause,
    );
  }
}

function parsePrivate(host: string, file: string, text: Buffer, passphrase: string | undefined): ParsedKey {
  const key = parseOne(text, passphrase);
  if (!(key instanceof Error)) {
    if (key.isPrivateKey()) return key;
    throw unusable(host, `${file} is a public key`, 'Name the private key file (without .pub) as "identity".');
  }
  if (/no passphrase given/i.test(key.message)) {
    throw unusable(
      host,
      `the key ${file} is encrypted and no passphrase is set`,
      'Set RECLAIM_SSH_PASSPHRASE, or use the agent with "agentIdentity".',
    );
  }
  if (passphrase !== undefined && /passphrase|decrypt|integrity|malformed|bad/i.test(key.message)) {
    throw unusable(
      host,
      `the passphrase does not open the key ${file}`,
      'Check RECLAIM_SSH_PASSPHRASE against that key.',
    );
  }
  throw unusable(
    host,
    `${file} is not a private key Reclaim can use`,
    'Use an ed25519, ecdsa or rsa key in OpenSSH or PEM form; keys on security tokens work through the agent only where it lists them as one of these.',
  );
}

/** ssh2 gives an array, against its types, for a file of several keys; the first is meant, as ssh takes it. */
function parseOne(text: Buffer, passphrase?: string): ParsedKey | Error {
  const found: ParsedKey | Error | readonly (ParsedKey | Error)[] = ssh2.utils.parseKey(text, passphrase);
  const [first] = [found].flat();
  return first ?? new Error('no key in it');
}

async function fromAgent(host: string, publicFile: string, socket: string | undefined): Promise<Identity> {
  const { text } = await read(host, publicFile);
  const wanted = parseOne(text);
  if (wanted instanceof Error) {
    throw unusable(
      host,
      `${publicFile} is not a public key`,
      'Name the .pub file of the agent key as "agentIdentity".',
    );
  }
  if (socket === undefined) {
    throw unusable(host, 'SSH_AUTH_SOCK is not set, so there is no agent to ask', 'Start an agent, or set "identity".');
  }
  const agent = new ssh2.OpenSSHAgent(socket);
  const blob = wanted.getPublicSSH();
  const key = (await listKeys(host, agent, socket)).find((held) => held.getPublicSSH().equals(blob));
  if (key === undefined) {
    throw unusable(
      host,
      `the agent does not hold the key ${publicFile}`,
      'Add it with ssh-add; ssh-add -l lists what it holds.',
    );
  }
  const one = new OneKeyAgent(socket, key);
  return { says: `the agent key ${publicFile}`, method: (username) => ({ type: 'agent', username, agent: one }) };
}

function listKeys(host: string, agent: OpenSSHAgent, socket: string): Promise<ParsedKey[]> {
  return new Promise((resolve, reject) => {
    const refuse = (why: string, cause?: unknown) => {
      clearTimeout(timer);
      reject(
        unusable(host, `the ssh agent at ${socket} ${why}`, 'Check SSH_AUTH_SOCK and that the agent runs.', cause),
      );
    };
    const timer = setTimeout(() => {
      refuse('did not answer within 5 s');
    }, 5_000);
    agent.getIdentities((error, keys) => {
      if (error) {
        refuse('did not answer', error);
        return;
      }
      clearTimeout(timer);
      const usable = (keys ?? []).flatMap((key) => ('getPublicSSH' in key ? [key] : []));
      resolve(usable);
    });
  });
}

/** ssh2 offers every key an agent has, and sshd cuts off after six (MaxAuthTries): this one shows the key it was asked for. */
class OneKeyAgent extends ssh2.OpenSSHAgent {
  readonly #key: ParsedKey;

  constructor(socket: string, key: ParsedKey) {
    super(socket);
    this.#key = key;
  }

  override getIdentities(answer: (error?: Error | null, keys?: ParsedKey[]) => void): void {
    answer(null, [this.#key]);
  }
}
