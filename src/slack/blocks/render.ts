/** From a record to what is sent for one of its views. The newest state always wins: nothing is rendered ahead of time. */
import type { RequestRecord, View } from '../../requests/types.ts';
import { renderCard, type CardContext } from './card.ts';
import type { Message } from './elements.ts';
import { pictureOf, type Picture } from './picture.ts';
import { planFitsCard } from './plan.ts';
import { planFile, renderBreakGlass, renderDetails, renderOutcome, renderOwners, type TextFile } from './thread.ts';

export type Rendered =
  | { readonly kind: 'message'; readonly message: Message }
  | { readonly kind: 'file'; readonly file: TextFile }
  /** There is nothing to show (any more) for this view. */
  | { readonly kind: 'nothing' };

/** A request has pictures too. */
export type RequestRendered = Rendered | { readonly kind: 'picture'; readonly picture: Picture };

/** `receipt` is the finished receipt file, made where the audit events are at hand. */
export function renderView(record: RequestRecord, view: View, ctx: CardContext, receipt?: TextFile): RequestRendered {
  switch (view) {
    case 'card':
      return { kind: 'message', message: renderCard(record, ctx) };
    case 'outcome':
      return { kind: 'message', message: renderOutcome(record) };
    case 'details': {
      const message = renderDetails(record);
      return message === null ? { kind: 'nothing' } : { kind: 'message', message };
    }
    case 'owners': {
      const message = renderOwners(record);
      return message === null ? { kind: 'nothing' } : { kind: 'message', message };
    }
    case 'break_glass': {
      const message = renderBreakGlass(record, ctx.approvers);
      return message === null ? { kind: 'nothing' } : { kind: 'message', message };
    }
    case 'plan_file': {
      const file = record.plan === null || planFitsCard(record.plan) ? null : planFile(record);
      return file === null ? { kind: 'nothing' } : { kind: 'file', file };
    }
    case 'receipt_file':
      return receipt === undefined ? { kind: 'nothing' } : { kind: 'file', file: receipt };
    case 'picture': {
      const picture = pictureOf(record);
      return picture === null ? { kind: 'nothing' } : { kind: 'picture', picture };
    }
  }
}
