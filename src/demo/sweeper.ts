/** Removes what the demo made even when the demo is killed without a chance to clean up. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';

export interface Sweeper {
  /** Removes the paths now and ends. Safe to call twice. */
  sweep(): Promise<void>;
}

/**
 * A shell that waits on a pipe only we hold: the kernel closes it when this process ends, however that happens.
 * A session of its own keeps Ctrl-C in the terminal from ending it first.
 */
export function startSweeper(paths: readonly string[]): Sweeper {
  const script = 'cat >/dev/null; rm -rf -- "$@"';
  const shell = spawn('/bin/sh', ['-c', script, 'sweeper', ...paths], {
    detached: true,
    stdio: ['pipe', 'ignore', 'ignore'],
  });
  const ended = once(shell, 'close');
  shell.unref();
  return {
    sweep: async () => {
      shell.ref();
      shell.stdin.end();
      await ended;
    },
  };
}
