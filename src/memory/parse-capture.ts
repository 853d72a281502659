/** From text or parsed JSON to a capture (DESIGN 4.1), refused with the places that are wrong. */
import { ReclaimError } from '../errors.ts';
import { captureSchema, type Capture } from './contract.ts';

const fix = 'Nothing was diagnosed. Take a new one with `reclaim capture HOST`.';

/** Throws `capture_invalid`. Whatever passes here, `think` can read. */
export function parseCapture(input: unknown): Capture {
  const parsed = captureSchema.safeParse(typeof input === 'string' ? parseJson(input) : input);
  if (parsed.success) return parsed.data;
  const faults = parsed.error.issues.slice(0, 3).map((issue) => {
    const path = issue.path.map(String).join(' > ').slice(0, 120);
    return path === '' ? issue.message : `${path}: ${issue.message}`;
  });
  throw new ReclaimError('capture_invalid', `This is not a capture of a box (${faults.join('; ')}). ${fix}`, {
    cause: parsed.error,
  });
}

function parseJson(text: string): unknown {
  try {
    const value: unknown = JSON.parse(text.startsWith('\uFEFF') ? text.slice(1) : text);
    return value;
  } catch (cause) {
    const what = text.trim() === '' ? 'it is empty' : 'it is not JSON, or was cut short';
    throw new ReclaimError('capture_invalid', `This is not a capture of a box: ${what}. ${fix}`, { cause });
  }
}
