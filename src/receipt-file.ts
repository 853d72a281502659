/** The receipt of an ended run, as the file that goes into its thread. */
import { receiptOf } from './requests/receipt.ts';
import type { Store } from './requests/store.ts';
import type { RequestRecord } from './requests/types.ts';
import type { TextFile } from './slack/blocks/thread.ts';

export const receiptFile =
  (store: Store) =>
  async (record: RequestRecord): Promise<TextFile | undefined> => {
    const receipt = receiptOf(record, await store.events({ request: record.id, limit: 1000 }));
    if (receipt === null) return undefined;
    return {
      filename: `reclaim-${record.id}.receipt.json`,
      title: `Receipt of ${record.id} on ${record.host}`,
      content: `${JSON.stringify(receipt, null, 2)}\n`,
      comment: 'The receipt: plan, people, steps and figures. `reclaim receipt FILE` verifies it offline.',
    };
  };
