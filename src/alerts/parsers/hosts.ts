/**
 * From a name in an alert to a configured host, exactly: its name, an alias, its address, each with or without a port and
 * in short or full form. Nothing is guessed, and nothing from an alert is ever connected to: what maps to no configured
 * host, or to several, is asked about.
 */
import type { Alert } from './alert.ts';

export interface KnownHost {
  readonly name: string;
  readonly aliases: readonly string[];
  readonly address: string;
}

export type Mapped =
  | { readonly kind: 'known'; readonly host: string }
  | { readonly kind: 'several'; readonly hosts: readonly string[] }
  /** `said` is the first name the alert gave, if it gave any. */
  | { readonly kind: 'unknown'; readonly said: string | null };

const longestName = 253;

/** `https://GPU-box-3:9100/metrics` -> `gpu-box-3`, `[2001:db8::5]:9100` -> `2001:db8::5`; null for what is no name. */
export function bareName(said: string): string | null {
  let text = said.trim().toLowerCase();
  if (text.length > longestName + 50) return null;
  text = text.replace(/^[a-z][a-z0-9+.-]*:\/\//, '').replace(/[/?#].*$/s, '');
  const bracketed = /^\[([0-9a-f:.]+)\](?::\d{1,5})?$/.exec(text)?.[1];
  if (bracketed !== undefined) return sixth(bracketed);
  if (/^[0-9a-f]*:[0-9a-f]*:[0-9a-f:.]*$/.test(text)) return sixth(text);
  text = text.replace(/:\d{1,5}$/, '').replace(/\.$/, '');
  return text.length <= longestName && /^[a-z0-9_](?:[a-z0-9._-]*[a-z0-9_])?$/.test(text) ? text : null;
}

/** One spelling for every way to write the same IPv6 address. */
function sixth(text: string): string | null {
  try {
    return new URL(`http://[${text}]/`).hostname.slice(1, -1);
  } catch {
    return null;
  }
}

/** Every machine calls itself that, so it tells nothing: the sender's own exporter, or a box nobody named. */
export const saysNothing = (name: string): boolean =>
  /^(?:localhost(?:[.-].*)?|.*\.localhost|ip6-localhost|127\.[0-9.]+|0\.0\.0\.0|::1?|none|null|unknown|n\/a)$/.test(
    name,
  );

const isAddress = (name: string): boolean => name.includes(':') || /^[0-9.]+$/.test(name);
const shortOf = (name: string): string => (isAddress(name) ? name : (name.split('.')[0] ?? name));

function namesOf(host: KnownHost): string[] {
  return [host.name, ...host.aliases, host.address].flatMap((name) => bareName(name) ?? []);
}

/** All hosts that go by this name. More than one, or none: ask. */
export function hostsCalled(known: readonly KnownHost[], said: string): string[] {
  const name = bareName(said);
  if (name === null || saysNothing(name)) return [];
  const exact = known.filter((host) => namesOf(host).includes(name));
  if (exact.length > 0 || isAddress(name)) return exact.map((host) => host.name);
  const short = shortOf(name);
  const alike = known.filter((host) => {
    const names = namesOf(host).filter((each) => !isAddress(each));
    if (name === short) return names.some((each) => shortOf(each) === short);
    // A full name of another domain contradicts; a short name alone does not.
    return names.includes(short) && !names.some((each) => each !== short && shortOf(each) === short);
  });
  return alike.map((host) => host.name);
}

/**
 * The host an alert is about. Fields that name one decide, all together: where they name different hosts (a cloned node
 * name, an address moved), it is ambiguous. Words in running text count only where no field names anything.
 */
export function mapHost(known: readonly KnownHost[], alert: Pick<Alert, 'hints' | 'words'>): Mapped {
  const told = alert.hints.filter(({ said }) => {
    const name = bareName(said);
    return name === null || !saysNothing(name);
  });
  const names = told.length > 0 || alert.hints.length > 0 ? told.map((hint) => hint.said) : alert.words;
  const each = names.map((said) => hostsCalled(known, said)).filter((hosts) => hosts.length > 0);
  const single = [...new Set(each.filter((hosts) => hosts.length === 1).flat())];
  const [only] = single;
  if (only !== undefined && single.length === 1 && each.every((hosts) => hosts.includes(only))) {
    return { kind: 'known', host: only };
  }
  const all = [...new Set(each.flat())];
  if (all.length > 0) return { kind: 'several', hosts: all };
  return { kind: 'unknown', said: (told[0] ?? alert.hints[0])?.said.slice(0, longestName) ?? null };
}
