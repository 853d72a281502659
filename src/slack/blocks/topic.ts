/** From a topic to what is sent for one of its views. Pure. */
import type { SweepRow, Topic, TopicView } from '../../alerts/topics.ts';
import type { RequestRecord } from '../../requests/types.ts';
import { incidentAfter, incidentEnd, incidentRoot } from './incident.ts';
import { questionMessage } from './question.ts';
import type { Rendered } from './render.ts';
import { sweepFile, sweepMessage } from './sweep.ts';

export interface TopicContext {
  /** What the hosts of a sweep answered so far. */
  readonly rows: readonly SweepRow[];
  /** The newest request of an incident. */
  readonly request: RequestRecord | null;
}

export function renderTopic(topic: Topic, view: TopicView, context: TopicContext): Rendered {
  switch (topic.kind) {
    case 'incident':
      if (view === 'incident') return { kind: 'message', message: incidentRoot(topic, context.request) };
      if (view === 'incident_after') return incidentAfter(topic);
      return view === 'incident_end' ? incidentEnd(topic, context.request) : { kind: 'nothing' };
    case 'question':
      return view === 'question' ? { kind: 'message', message: questionMessage(topic) } : { kind: 'nothing' };
    case 'sweep':
      if (view === 'sweep') return { kind: 'message', message: sweepMessage(topic, context.rows) };
      return view === 'sweep_file' ? sweepFile(topic, context.rows) : { kind: 'nothing' };
    case 'silence':
      return { kind: 'nothing' };
  }
}
