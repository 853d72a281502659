/** Steps that tick: in Slack's plan where it is taken, in text where it is not. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { PlanBlock } from '@slack/types';
import { renderCard } from '../../src/slack/blocks/card.ts';
import { systemClock } from '../../src/system-clock.ts';
import { channel } from '../standin/world.ts';
import { openOffice, type Office } from './office.ts';
import { cardContext, everyCard } from './records.ts';

const planOf = (name: string): PlanBlock => {
  const plan = renderCard(everyCard[name]!, cardContext).blocks.find((block) => block.type === 'plan');
  if (plan?.type !== 'plan') throw new Error('no plan block');
  return plan;
};

describe('progress', () => {
  it('says in the title of the plan what is being waited for', () => {
    expect(planOf('running, waiting').title).toBe('Step 1 of 2: waiting for 3 of 6 processes to end');
    expect(planOf('running, half way').title).toBe('Step 2 of 2: dropping caches');
  });

  it('ticks each step as it ends, with what it gave', () => {
    expect(planOf('running, waiting').tasks?.map((t) => t.status)).toEqual(['in_progress', 'pending']);
    const [kill, drop] = planOf('running, half way').tasks ?? [];
    expect([kill?.status, drop?.status]).toEqual(['complete', 'in_progress']);
    expect(JSON.stringify(kill)).toContain('measured: 360 GiB to free');
  });

  it('is gone from the result', () => {
    expect(JSON.stringify(renderCard(everyCard.succeeded!, cardContext))).not.toContain('"plan"');
  });
});

describe('a running card', () => {
  let office: Office;
  beforeAll(async () => {
    office = await openOffice(systemClock, { slack: { rateLimits: false } });
    await office.startGateway();
  }, 60_000);
  afterAll(() => office.close());

  const cardOf = async (id: string) => {
    const createdAt = new Date().toISOString();
    const record = { ...everyCard['running, waiting']!, id, host: id, channel, version: 1, createdAt };
    await office.store.create({ record, deliver: ['card'] });
    const card = await office.slack.waitFor('the card', () =>
      office.slack.messages(channel).find((m) => m.text.startsWith(`${id}:`)),
    );
    return JSON.stringify(card.blocks);
  };

  it('has the plan where the workspace takes it', async () => {
    expect(await cardOf('box-new')).toContain('"status":"in_progress"');
  });

  it('has the same steps as text where it does not, and everything else', async () => {
    office.slack.workspace.refusedBlocks.add('plan');
    const blocks = await cardOf('box-old');
    expect(blocks).not.toContain('task_card');
    expect(blocks).toContain('now: waiting for 3 of 6 processes to end');
    expect(blocks).toContain('buff/cache');
  });
});
