/** Lines of Reclaim's own log, as `reclaim serve` wrote them, that name one request. Pure. */
import { z } from 'zod';

const lineSchema = z.looseObject({
  time: z.number(),
  level: z.string(),
  msg: z.string().default(''),
  instance: z.string().default(''),
  request: z.string().optional(),
  delivery: z.string().optional(),
  job: z.string().optional(),
  err: z.looseObject({ message: z.string() }).optional(),
});

export interface LogLine {
  readonly at: string;
  readonly from: 'log';
  readonly who: string;
  readonly what: string;
  readonly why: string;
}

/** What is not one of our lines (another program's, a broken one) is passed over. */
export function logLinesOf(text: string, request: string): LogLine[] {
  return text.split('\n').flatMap((line): LogLine[] => {
    if (!line.includes(request)) return [];
    let value: unknown;
    try {
      value = JSON.parse(line);
    } catch {
      return [];
    }
    const parsed = lineSchema.safeParse(value);
    if (!parsed.success) return [];
    const { time, level, msg, instance, job, err, delivery, ...about } = parsed.data;
    if (about.request !== request && delivery?.startsWith(`${request}.`) !== true) return [];
    const why = [msg, err?.message].filter((part) => part !== undefined && part !== '').join(': ');
    return [{ at: new Date(time).toISOString(), from: 'log', who: instance, what: job ?? level, why }];
  });
}
