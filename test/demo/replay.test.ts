import { describe, expect, it } from 'vitest';
import { replayed } from '../../src/demo/replay.ts';

describe('the demo away from Linux', () => {
  const text = replayed(100, false);

  it('says that it shows a recorded box and touches nothing here', () => {
    expect(text).toMatch(/recorded box/);
    expect(text).toMatch(/nothing is looked at, ended or dropped on this machine/);
  });

  it('works out the report anew: verdict, the leftover build, a plan without the look-alikes', () => {
    expect(text).toMatch(/verdict: lingering/);
    expect(text).toMatch(/leftover_build/);
    const plan = text.slice(text.indexOf('Plan'));
    expect(plan).toMatch(/9 processes|end .*processes/i);
    expect(plan).not.toMatch(/vim/);
  });
});
