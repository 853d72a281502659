/** views.*: modals (opened by a trigger, at most three deep) and the Home tab. */
import { randomBytes } from 'node:crypto';
import { asObjs, isObj, type Obj } from '../json.ts';
import { faultsInView } from '../limits.ts';
import { refuseWith, SlackRefusal, type View } from '../model.ts';
import { wireView } from '../wire.ts';
import type { Workspace } from '../workspace.ts';
import { tier, type Method, type MethodContext } from './types.ts';

const maxStack = 3;

/** The payload of a view, checked as Slack checks it. */
export function checkedView(ws: Workspace, value: unknown, type: 'modal' | 'home'): Obj {
  if (!isObj(value)) throw refuseWith('invalid_arguments', ['[ERROR] missing required field: view']);
  const faults = faultsInView(value);
  if (value['type'] !== type) faults.push(`[ERROR] must be ${type} [json-pointer:/view/type]`);
  if (faults.length > 0) throw refuseWith('invalid_arguments', faults);
  if (JSON.stringify(value).length > 250_000) throw new SlackRefusal('view_too_large');
  return { ...value, blocks: ws.withBlockIds(asObjs(value['blocks'])) };
}

export function pushModal(ws: Workspace, person: string, body: Obj): View {
  const stack = ws.modals(person);
  if (stack.length >= maxStack) throw new SlackRefusal('push_limit_reached');
  const id = ws.nextId('V');
  const view: View = {
    id,
    person,
    type: 'modal',
    hash: ws.newHash(),
    body,
    rootId: stack[0]?.id ?? id,
    ...(stack.length === 0 ? {} : { previousId: stack.at(-1)?.id ?? id }),
    errors: {},
  };
  ws.setModals(person, [...stack, view]);
  return view;
}

/** Replaces what a view shows. The hash changes, so that a late update can be told from a current one. */
export function replaceView(ws: Workspace, view: View, body: Obj): void {
  view.body = body;
  view.hash = ws.newHash();
  view.errors = {};
  ws.announce(view.type === 'home' ? { type: 'home', person: view.person } : { type: 'modals', person: view.person });
}

function checkHash({ args }: MethodContext, view: View | undefined): void {
  if (args.has('hash') && view !== undefined && args.text('hash') !== view.hash)
    throw new SlackRefusal('hash_conflict');
}

export const viewMethods: Record<string, Method> = {
  'views.open': {
    perMinute: tier.four,
    run: ({ ws, args, triggers }) => {
      const body = checkedView(ws, args.json('view'), 'modal');
      const person = triggers.spend(args.need('trigger_id'));
      ws.setModals(person, []);
      return { view: wireView(ws, pushModal(ws, person, body)) };
    },
  },
  'views.push': {
    perMinute: tier.four,
    run: ({ ws, args, triggers }) => {
      const body = checkedView(ws, args.json('view'), 'modal');
      return { view: wireView(ws, pushModal(ws, triggers.spend(args.need('trigger_id')), body)) };
    },
  },
  'views.update': {
    perMinute: tier.four,
    run: (context) => {
      const { ws, args } = context;
      const view = ws.view(args.text('view_id')) ?? byExternalId(ws, args.text('external_id'));
      if (view === undefined) throw new SlackRefusal('not_found');
      checkHash(context, view);
      replaceView(ws, view, checkedView(ws, args.json('view'), view.type));
      return { view: wireView(ws, view) };
    },
  },
  'views.publish': {
    perMinute: tier.four,
    run: (context) => {
      const { ws, args } = context;
      const person = ws.person(args.need('user_id')).id;
      const known = ws.homes.get(person);
      checkHash(context, known);
      const body = checkedView(ws, args.json('view'), 'home');
      const id = known?.id ?? `V${randomBytes(5).toString('hex').toUpperCase()}`;
      const view = known ?? { id, person, type: 'home' as const, hash: '', body, rootId: id, errors: {} };
      ws.homes.set(person, view);
      replaceView(ws, view, body);
      return { view: wireView(ws, view) };
    },
  },
};

function byExternalId(ws: Workspace, externalId: string): View | undefined {
  if (externalId === '') return undefined;
  return [...ws.people.keys()].flatMap((p) => ws.modals(p)).find((v) => v.body['external_id'] === externalId);
}
