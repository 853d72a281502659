/** Reading JSON whose shape is somebody else's: every getter answers with the wanted type or says it is not there. */
export type Obj = Record<string, unknown>;

export function isObj(value: unknown): value is Obj {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

export function asObj(value: unknown): Obj {
  return isObj(value) ? value : {};
}

export function asList(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? (value as unknown[]) : [];
}

export function asObjs(value: unknown): Obj[] {
  return asList(value).filter(isObj);
}

export function asText(value: unknown, otherwise = ''): string {
  return typeof value === 'string' ? value : otherwise;
}

export function parseJson(text: string): unknown {
  try {
    return JSON.parse(text) as unknown;
  } catch {
    return undefined;
  }
}

/** Slack counts characters, not UTF-16 units: an emoji is one. */
export function charsIn(text: string): number {
  return Array.from(text).length;
}
