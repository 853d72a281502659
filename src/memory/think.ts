/** Facts to plan: the one entry of the memory engine. Pure, and never throws: every capture that passes its schema gets an answer. */
import { account } from './accounting.ts';
import { commandText, fileText } from './blob.ts';
import type { Capture } from './contract.ts';
import { readFacts } from './facts.ts';
import { inferFormula, memoryBy, parseFreeOutput } from './free.ts';
import { makePlan } from './plan.ts';
import type { ProcessStory, ThinkOptions, Thought } from './story.ts';

export const defaultThinkOptions: ThinkOptions = {
  protect: [],
  minAgeSeconds: { process: 0, shm: 300, sysv: 300 },
  kept: [],
};

/** What is told about processes where none can be seen. */
const unseen: ProcessStory = {
  findings: [],
  steps: [],
  identities: {},
  partial: ['The processes of the box were not looked at.'],
  liveKiB: 0,
  sighted: false,
};

export function think(capture: Capture, _options: ThinkOptions = defaultThinkOptions): Thought {
  return judge(capture, unseen);
}

/** Joins the memory side of a capture with what its processes say. */
export function judge(capture: Capture, story: ProcessStory): Thought {
  const facts = readFacts(capture);
  const printed = parseFreeOutput(commandText(capture, 'free -k') ?? '');
  const { formula } = inferFormula(printed, facts.meminfo, facts.lowWatermarkKiB);
  const bootId = readBootId(capture);
  return {
    diagnosis: {
      host: capture.host,
      takenAt: capture.takenAt,
      verdict: 'unknown',
      headline: 'We cannot see enough of this box to say.',
      confidence: 'low',
      partial: [...story.partial],
      memory: memoryBy(formula, facts.meminfo, facts.lowWatermarkKiB),
      accounting: [...account(facts).classes],
      findings: [...story.findings].sort((a, b) => b.kiB - a.kiB),
      plan: makePlan(story.steps, story.identities, bootId),
    },
    identities: story.identities,
    bootId,
  };
}

/** Empty when the box did not tell, or told something that is no boot id. */
function readBootId(capture: Capture): string {
  const text = (fileText(capture, '/proc/sys/kernel/random/boot_id') ?? '').trim();
  return /^[0-9a-f-]{36}$/i.test(text) ? text.toLowerCase() : '';
}
