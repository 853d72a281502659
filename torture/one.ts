/** One part in a process of its own; what it finds goes to the parent. */
import { parts } from './parts.ts';
import { bringToCount } from './report.ts';

const [name, seed, form] = process.argv.slice(2);
const part = parts.find((one) => one.name === name);
if (part === undefined) throw new Error(`There is no part ${name}.`);
await bringToCount(part, Number(seed), form === 'long' ? part.long : part.short);
