/** Arguments of a Web API call, from a form (values are JSON text), a JSON body, or a multipart upload. */
import { asList, isObj, parseJson, type Obj } from './json.ts';
import { SlackRefusal } from './model.ts';

export class Args {
  readonly #values: Obj;

  constructor(values: Obj) {
    this.#values = values;
  }

  static parse(contentType: string, body: string): Args {
    if (contentType.startsWith('application/json')) {
      const value = body === '' ? {} : parseJson(body);
      if (!isObj(value)) throw new SlackRefusal('invalid_json');
      return new Args(value);
    }
    return new Args(Object.fromEntries(new URLSearchParams(body)));
  }

  has(name: string): boolean {
    return this.#values[name] !== undefined && this.#values[name] !== null;
  }

  text(name: string, otherwise = ''): string {
    const value = this.#values[name];
    if (typeof value === 'string') return value;
    return typeof value === 'number' || typeof value === 'boolean' ? String(value) : otherwise;
  }

  /** The argument, or Slack's error for a missing one. */
  need(name: string): string {
    const value = this.text(name);
    if (value !== '') return value;
    throw new SlackRefusal('invalid_arguments', {
      response_metadata: { messages: [`[ERROR] missing required field: ${name}`] },
    });
  }

  flag(name: string): boolean {
    return this.text(name) === 'true' || this.text(name) === '1';
  }

  count(name: string, otherwise: number, max: number): number {
    const value = Number(this.text(name, String(otherwise)));
    return Number.isInteger(value) && value > 0 ? Math.min(value, max) : otherwise;
  }

  json(name: string): unknown {
    const value = this.#values[name];
    return typeof value === 'string' ? parseJson(value) : value;
  }

  list(name: string): readonly unknown[] | undefined {
    if (!this.has(name)) return undefined;
    const value = this.json(name);
    return Array.isArray(value) ? asList(value) : undefined;
  }
}
