/**
 * The one way a command line or other text of a box leaves the engine: secrets out, control characters shown as what
 * they are, cut by code point. When in doubt it hides too much; it never hides the program's name or a source file.
 */

const hidden = '[redacted]';

const secretWords = new Set(
  (
    'password passwd passphrase passcode pwd pass pw secret secrets token apikey auth authorization credential credentials ' +
    'cookie cookies jwt bearer pat dsn webhook signature sig otp'
  ).split(' '),
);
const keyKinds =
  /(^|_)(api|access|secret|private|account|client|license|master|encryption|signing|session|auth|ssh|shared|host|service|storage|app|admin|deploy|write|read|hf|wandb|aws)_key(_id|_secret)?($|_)/;
/** What follows a secret's word when the value is a setting, not a secret: `--auth-type`, `--token-limit`, `--password-file`. */
const settingWords =
  /_(type|mode|method|url|uri|file|path|dir|limit|count|len|length|size|ids|budget|policy|provider|parallel|batch|ratio|dropout|env|name|header|ttl|expiry|expires)$/;

const mayBeSecret = /pass|pwd|pw|secret|token|key|auth|cred|cookie|jwt|bearer|pat|dsn|webhook|sig|otp/i;

/** Splits camelCase, kebab and dots: `max-tokens` is not a token, `tokenizer` neither, `HF_TOKEN` and `clientSecret` are. */
export function isSecretKey(key: string): boolean {
  if (!mayBeSecret.test(key)) return false;
  const plain = key
    .replace(/([a-z0-9])([A-Z])/g, '$1_$2')
    .toLowerCase()
    .replace(/[^a-z0-9]+/g, '_')
    .replace(/^_+|_+$/g, '');
  if (settingWords.test(plain)) return false;
  if (keyKinds.test(plain)) return true;
  return plain
    .split('_')
    .some((word) => secretWords.has(word) || /(password|passwd|secret|apikey|accesskey)$/.test(word));
}

/** Tokens that say what they are. */
const knownTokens =
  /\b(?:xox[a-z]-[\w-]{4,}|xapp-[\w-]{4,}|gh[pousr]_\w{4,}|github_pat_\w{4,}|glpat-[\w-]{4,}|hf_[A-Za-z0-9]{6,}|sk-[\w-]{6,}|sk_(?:live|test)_\w{4,}|rk_live_\w{4,}|pk_live_\w{4,}|(?:AKIA|ASIA)[A-Z0-9]{8,}|AIza[\w-]{10,}|ya29\.[\w-]{6,}|npm_\w{10,}|pypi-[\w-]{10,}|dckr_pat_[\w-]{6,}|nvapi-[\w-]{6,}|r8_\w{10,}|gsk_\w{10,}|SG\.[\w-]{6,}\.[\w-]{6,}|eyJ[\w-]{6,}\.[\w-]{4,}(?:\.[\w-]*)?|dop_v1_\w{10,}|shpat_\w{10,}|AGE-SECRET-KEY-\w+|hvs\.\w{6,})/g;

const startsLikeToken =
  /^(xox|xapp|gh[pousr]_|github|glpat|hf_|[spr]k[-_]|AKIA|ASIA|AIza|ya29|npm_|pypi|dckr|nvapi|r8_|gsk_|SG\.|eyJ|dop|shpat|AGE|hvs)/;

const urlUser = /(\b[a-z][a-z0-9+.-]{0,20}:\/\/)([^\s/@'":]*):([^\s/'"]*)@/gi;
const urlToken = /(\bhttps?:\/\/)([^\s/@'":]+)@/gi;
const botPath = /(\/bot)[^/\s'"]+(?=\/)/g;
const hookPath = /(\/\/hooks\.[^/\s]+\/|\/api\/webhooks\/)[^\s'"?]+/g;
const pem = /-----BEGIN [A-Z ]*PRIVATE KEY-----[^]*?(-----END [A-Z ]*PRIVATE KEY-----|$)/g;
const header =
  /\b((?:proxy-)?authorization|x-api-key|x-auth-token|x-amz-security-token|api-key|private-token|set-cookie|cookie)(\\?["']?\s*[:=]\s*\\?["']?)(?:(?:bearer|basic|token|digest|negotiate)\s+)?[^'"\n]+/gi;
const headerMark = /authorization|cookie|-(?:key|token)/i;
const bearerMark = /bearer|basic/i;
const bearer = /\b(bearer|basic)(\s+)[\w.~+/=-]{6,}/gi;
const jsonField = /(\\*["'])([\w.\- ]{1,64})\1(\s*:\s*)(?:(\\*["'])(.*?)(\4|$)|[^\s,}\]]+)/gs;

/** Takes secrets out of any text: a command line, a log line, an error that repeats one. Length stays bounded by the caller. */
function stripSecrets(text: string): string {
  if (text.length < 20 && /^[\w./+-]*$/.test(text) && !startsLikeToken.test(text)) return text;
  let shaped = text.replace(knownTokens, hidden);
  // A look at a crowded box redacts a hundred thousand arguments: each form is tried only where its own mark is there.
  if (shaped.includes('-----BEGIN')) shaped = shaped.replace(pem, hidden);
  if (shaped.includes('://')) {
    shaped = shaped
      .replace(urlUser, (_, scheme: string, user: string) => `${scheme}${looksRandom(user) ? hidden : user}:${hidden}@`)
      .replace(urlToken, (whole, scheme: string, user: string) => (user === 'git' ? whole : `${scheme}${hidden}@`));
  }
  if (shaped.includes('/bot')) shaped = shaped.replace(botPath, `$1${hidden}`);
  if (shaped.includes('hooks')) shaped = shaped.replace(hookPath, `$1${hidden}`);
  if (headerMark.test(shaped))
    shaped = shaped.replace(header, (_, name: string, gap: string) => `${name}${gap}${hidden}`);
  if (bearerMark.test(shaped)) shaped = shaped.replace(bearer, `$1$2${hidden}`);
  if (/["']/.test(shaped)) {
    shaped = shaped.replace(
      jsonField,
      (whole, q: string, key: string, colon: string, v: string | undefined, _value, end: string | undefined) =>
        isSecretKey(key) ? `${q}${key}${q}${colon}${v ?? ''}${hidden}${end ?? ''}` : whole,
    );
  }
  return stripRandom(/[=:]|%3D/.test(shaped) ? stripAssignments(shaped) : shaped);
}

/** `KEY=value` and `key: value` wherever they stand: after `export`, inside `--option=`, in a query string. */
function stripAssignments(text: string): string {
  const assignment = /([A-Za-z_][\w.-]{0,80})(\s?=\s?|:\s?(?!\/\/)|%3D)/g;
  let out = '';
  let from = 0;
  for (let m = assignment.exec(text); m !== null; m = assignment.exec(text)) {
    const key = m[1] ?? '';
    if (!isSecretKey(key)) continue;
    const start = m.index + m[0].length;
    const inQuery = m.index > 0 && /[?&]/.test(text[m.index - 1] ?? '');
    const end = valueEnd(text, start, inQuery);
    if (end === start || text.startsWith(hidden, start)) continue;
    out += text.slice(from, start) + hidden;
    from = end;
    assignment.lastIndex = end;
  }
  return out + text.slice(from);
}

function valueEnd(text: string, start: number, inQuery: boolean): number {
  const quote = text[start];
  if (quote === '"' || quote === "'") {
    const close = text.indexOf(quote, start + 1);
    return close === -1 ? text.length : close + 1;
  }
  const stop = (inQuery ? /[\s&"'#]/ : /[\s"']/).exec(text.slice(start));
  const end = stop === null ? text.length : start + stop.index;
  return text[end - 1] === ';' ? end - 1 : end;
}

const runs = /[A-Za-z0-9+_=-]{20,}/g;

/** Long strings without a word in them. Paths and file names keep their hashes: they are how people know a build. */
function stripRandom(text: string): string {
  return text.replace(runs, (run, at: number) => {
    const before = text[at - 1] ?? '';
    const after = text[at + run.length] ?? '';
    if (before === '/' || before === '.' || after === '.' || after === '/') return run;
    const value = run.slice(run.indexOf('=') + 1);
    return looksRandom(value) ? run.slice(0, run.length - value.length) + hidden : run;
  });
}

function looksRandom(text: string): boolean {
  if (/^[0-9a-fA-F]{32,}$/.test(text) && /[a-f]/i.test(text) && /\d/.test(text)) return true;
  if (text.length < 20) return false;
  const kinds = [/[a-z]/g, /[A-Z]/g, /\d/g].map((kind) => text.match(kind)?.length ?? 0);
  if (kinds.some((n) => n < 2)) return false;
  let changes = 0;
  for (let i = 1; i < text.length; i++) if (kindOf(text, i) !== kindOf(text, i - 1)) changes++;
  return changes / text.length > 0.35 && new Set(text).size > 12;
}

function kindOf(text: string, at: number): number {
  const c = text.charCodeAt(at);
  if (c >= 48 && c <= 57) return 0;
  if (c >= 65 && c <= 90) return 1;
  return c >= 97 && c <= 122 ? 2 : 3;
}

/** Control, format (bidi, zero width) and broken characters, written out. A name can forge neither a line nor a direction. */
const unsafe = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Cs}\p{Co}]/gu;

const plainAscii = /^[ -~]*$/;

/** Escapes and cuts a text of the box to `limit` code points, without looking for secrets: for names, not command lines. */
export function escapeText(text: string, limit = 120): string {
  if (text.length <= limit && plainAscii.test(text)) return text;
  const shown = text.slice(0, limit * 4).replace(unsafe, (c) => {
    if (c === '\n') return '\\n';
    if (c === '\t') return '\\t';
    if (c === '\r') return '\\r';
    const code = c.codePointAt(0) ?? 0;
    if (code >= 0xd800 && code <= 0xdfff) return '\ufffd';
    return code < 256 ? `\\x${code.toString(16).padStart(2, '0')}` : `\\u{${code.toString(16)}}`;
  });
  return cut(shown, limit);
}

const surrogate = /[\ud800-\udfff]/;

function cut(text: string, limit: number): string {
  if (text.length <= limit) return text;
  if (!surrogate.test(text)) return `${text.slice(0, limit - 1)}…`;
  const points = Array.from(text.slice(0, limit * 2 + 2));
  return points.length <= limit && text.length <= limit * 2 + 2 ? text : `${points.slice(0, limit - 1).join('')}…`;
}

/** Any other text of the box (kernel lines, errors): redacted, escaped, at most 2,000 code points. */
export const redactText = (text: string): string => escapeText(stripFlags(stripSecrets(text.slice(0, 16_384))), 2000);

const attachedPassword =
  /^-p(?!(?:\d+(?::\d+)?|ipe|thread|ie|edantic.*|rint.*|rofile.*|ackage.*|ort.*|ath.*|g|lain.*|refix.*|ython.*|roject.*|rocess.*|arallel.*)$)[^/=]+$/;
const shortSecretFlags: Readonly<Record<string, readonly string[]>> = {
  sshpass: ['-p'],
  mysql: ['-p'],
  mariadb: ['-p'],
  mysqldump: ['-p'],
  mongo: ['-p'],
  mongosh: ['-p'],
  mongodump: ['-p'],
  'redis-cli': ['-a'],
  ldapsearch: ['-w'],
  curl: ['-u', '-U', '--user', '--proxy-user'],
  wget: ['--http-user'],
  docker: ['-p'],
};

const programOf = (argv: readonly string[]): string => {
  const title = argv[0] ?? '';
  const blank = title.indexOf(' ');
  const first = blank === -1 ? title : title.slice(0, blank);
  return first.slice(first.lastIndexOf('/') + 1);
};

/** A flag that announces a secret in the next argument. */
function announces(argv: readonly string[], at: number, program: string): boolean {
  const flag = argv[at] ?? '';
  if (!/^--?[A-Za-z][\w.-]*$/.test(flag)) return false;
  if (isSecretKey(flag)) return true;
  const short = Object.hasOwn(shortSecretFlags, program) ? shortSecretFlags[program] : undefined;
  if (short?.includes(flag) !== true) return false;
  return program !== 'docker' || argv.includes('login');
}

const argLimit = 600;
const shownArgs = 60;

function redactArg(argv: readonly string[], at: number, program: string): string {
  const arg = (argv[at] ?? '').slice(0, argLimit);
  const looksLikeFlag = /^--?[A-Za-z]/.test(arg);
  if (at > 0 && announces(argv, at - 1, program) && !(looksLikeFlag && announcesNothing(arg))) {
    return program === 'curl' && arg.includes(':') ? `${arg.slice(0, arg.indexOf(':'))}:${hidden}` : hidden;
  }
  const assigned = /^(--?[A-Za-z][\w.-]*|[A-Za-z_]\w*)=/.exec(arg);
  if (assigned?.[1] !== undefined && isSecretKey(assigned[1])) return `${assigned[0]}${hidden}`;
  if (at > 0 && attachedPassword.test(arg) && !sourceFile.test(arg)) return `-p${hidden}`;
  return stripFlags(stripSecrets(arg));
}

/** `--token --verbose`: the second is a flag of its own. A secret that begins with a dash and holds odd letters is not. */
const announcesNothing = (arg: string): boolean => /^--?[a-z][a-z-]*(=.*)?$/.test(arg) && !looksRandom(arg);

/** Flags inside one argument: a rewritten title, or `sh -c "tool --token X"`. */
const stripFlags = (text: string): string =>
  text.replace(
    /(^|\s)(--?[A-Za-z][\w.-]*)(\s+)("[^"]*"?|'[^']*'?|[^\s"']+)/g,
    (whole, lead: string, flag: string, gap: string) => (isSecretKey(flag) ? `${lead}${flag}${gap}${hidden}` : whole),
  );

const sourceFile = /\.(cu|cuh|cpp|cc|cxx|c|ptx|ii|cubin|py|rs|ipynb|json|ya?ml|toml|jar)$/;

/**
 * A command line for people: at most `limit` code points, secrets hidden, the program first. When it is too long the
 * middle goes, but the source file it works on stays. Only what is shown is redacted: a crowded build has thousands of
 * these with hundreds of arguments each.
 */
export function redactCommand(argv: readonly string[], limit = 200): string {
  const program = programOf(argv);
  let whole = '';
  let at = 0;
  // Two UTF-16 units make a code point at most, so a text twice as long is sure to be cut.
  for (; at < argv.length && at < shownArgs && whole.length <= (surrogate.test(whole) ? limit * 2 : limit); at++) {
    const raw = argv[at] ?? '';
    // argv[0] is the program, unless the process rewrote it into a whole title.
    const arg = at === 0 && !raw.includes(' ') ? programText(raw) : redactArg(argv, at, program);
    whole += `${at === 0 ? '' : ' '}${escapeText(arg, argLimit)}`;
  }
  if (at === argv.length && Array.from(whole).length <= limit) return whole;
  const source = lastSource(argv, program);
  const name = escapeText(source.slice(source.lastIndexOf('/') + 1), 80);
  const head = cut(whole, limit - (name === '' ? 0 : Array.from(name).length + 1));
  return name === '' || head.includes(name) ? cut(`${whole} …`, limit) : `${head} ${name}`;
}

/** The last argument that is a source file and no secret; empty when there is none. */
function lastSource(argv: readonly string[], program: string): string {
  for (let at = argv.length - 1; at > 0; at--) {
    const raw = argv[at] ?? '';
    if (raw.length >= argLimit || !sourceFile.test(raw)) continue;
    const arg = redactArg(argv, at, program);
    if (sourceFile.test(arg)) return arg;
  }
  return '';
}

const programText = (path: string): string => (path.length <= 80 ? path : `…/${path.slice(path.lastIndexOf('/') + 1)}`);

/** The same argument by argument, for a capture that goes to a stranger: still an argv, so it can be diagnosed again. */
export function redactArgv(argv: readonly string[]): string[] {
  const program = programOf(argv);
  return argv.map((raw, at) => (at === 0 && !raw.includes(' ') ? raw : redactArg(argv, at, program)));
}
