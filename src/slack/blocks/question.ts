/** An alert whose host is not known: what it said, and a menu of the hosts it could be. Pure. */
import type { ActionsBlock } from '@slack/types';
import type { Question } from '../../alerts/topics.ts';
import { cut, limits, mrkdwn, oneLine, type Piece } from '../text.ts';
import { button, context, header, plain, rich, sentence, type Message } from './elements.ts';

export const questionActionIds = { host: 'reclaim_question_host', dismiss: 'reclaim_question_dismiss' } as const;

/** Slack's most per menu. */
export const choicesAtMost = 100;

function asked(question: Question): string {
  if (question.candidates.length > 1) {
    return `This alert could mean ${question.candidates.slice(0, 10).join(', ')}. Nothing was looked at. Which one is it?`;
  }
  const name =
    question.said === null
      ? 'names no host I know'
      : `names "${cut(oneLine(question.said), 80)}", which is no host I know`;
  return `This alert ${name}, so nothing was looked at. If it is one of yours, choose it; hosts and their other names are in reclaim.yaml.`;
}

export function questionMessage(question: Question): Message {
  const { answer } = question;
  const choices = question.choices.slice(0, choicesAtMost);
  const title = cut(oneLine(question.title), 300);
  const says: Piece[] =
    answer !== undefined
      ? answer.host === ''
        ? ['Dismissed by ', { who: answer.by }, '.']
        : [{ who: answer.by }, ' says that it is ', { bold: answer.host }, '. Its thread is in this channel.']
      : question.resolved
        ? ['Whoever sent it says that it is resolved.']
        : [asked(question)];
  const menu: ActionsBlock = {
    type: 'actions',
    block_id: `question.${question.id}`,
    elements: [
      ...(choices.length === 0
        ? []
        : [
            {
              type: 'static_select' as const,
              action_id: questionActionIds.host,
              placeholder: plain('Which host?', 75),
              options: choices.map((host) => ({ text: plain(host, limits.optionChars), value: host })),
            },
          ]),
      button({ label: 'Dismiss', action: questionActionIds.dismiss, value: question.id }),
    ],
  };
  const blocks = [
    header(`Alert for an unknown host`),
    rich([{ line: [{ bold: title }] }]),
    sentence(...says),
    ...(question.count === 1 ? [] : [context([`Fired ${question.count} times.`])]),
    ...(answer === undefined && !question.resolved ? [menu] : []),
  ];
  return { text: mrkdwn([`Alert for an unknown host: ${title}. `, ...says], limits.fallbackChars), blocks };
}
