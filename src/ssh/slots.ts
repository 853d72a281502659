/** A fixed number of places, given out in the order asked. */
export interface Slots {
  /** Resolves with the function that gives the place back; rejects with the signal's reason. */
  take(signal?: AbortSignal): Promise<() => void>;
  /** Never fewer than one. What is out stays out. */
  shrinkTo(size: number): void;
  readonly taken: number;
}

export function createSlots(places: number): Slots {
  let size = places;
  let taken = 0;
  const waiting: (() => void)[] = [];
  const give = () => {
    while (taken < size) {
      const next = waiting.shift();
      if (next === undefined) return;
      taken += 1;
      next();
    }
  };
  const release = () => {
    let done = false;
    return () => {
      if (done) return;
      done = true;
      taken -= 1;
      give();
    };
  };
  return {
    get taken() {
      return taken;
    },
    shrinkTo(to) {
      size = Math.max(1, Math.min(size, to));
    },
    async take(signal) {
      signal?.throwIfAborted();
      await new Promise<void>((resolve, reject) => {
        const onAbort = () => {
          const at = waiting.indexOf(start);
          if (at >= 0) waiting.splice(at, 1);
          reject(reasonOf(signal));
        };
        const start = () => {
          signal?.removeEventListener('abort', onAbort);
          resolve();
        };
        signal?.addEventListener('abort', onAbort, { once: true });
        waiting.push(start);
        give();
      });
      return release();
    },
  };
}

/** What an aborted signal was aborted with, as an Error. */
export function reasonOf(signal: AbortSignal | undefined): Error {
  const reason: unknown = signal?.reason;
  return reason instanceof Error ? reason : new Error('stopped', { cause: reason });
}
