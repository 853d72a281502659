/** Switches that make this Slack misbehave, for looking at how the app takes it. */
import { $, el, post, say } from './dom.js';

const switches = [
  ['Rate-limit 3 calls', { switch: 'calls', kind: 'ratelimited', count: 3, retryAfterSeconds: 2 }],
  ['Fail 3 calls (503)', { switch: 'calls', kind: 'server_error', count: 3 }],
  ['Cut 1 call after it took effect', { switch: 'calls', kind: 'reset_after_commit', count: 1 }],
  ['Slow 2 calls', { switch: 'calls', kind: 'slow', count: 2, delayMs: 4000 }],
  ['Send the next event twice', { switch: 'duplicate', count: 1 }],
  ['Cut the socket', { switch: 'drop_sockets' }],
  ['Ask the app to reconnect', { switch: 'refresh_sockets' }],
  ['All well again', { switch: 'clear' }],
];

export function drawFaults() {
  const flip = (label, body) => () =>
    post('/local/faults', body).then(
      () => say(`Done: ${label.toLowerCase()}.`),
      (error) => say(error.message),
    );
  $('faults').replaceChildren(
    el('summary', {}, 'Make Slack misbehave'),
    el('p', {}, 'See how the app copes with a bad day.'),
    el(
      'div',
      { class: 'switches' },
      ...switches.map(([label, body]) =>
        el('button', { class: 'button', type: 'button', onclick: flip(label, body) }, label),
      ),
    ),
  );
}
