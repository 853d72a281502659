/** "Did you mean …?": the closest of the known words, or null when none is close. Pure. */

/** Edits (insert, delete, replace, swap of neighbours) that turn `a` into `b`. */
function distance(a: string, b: string): number {
  let beforeLast: number[] = [];
  let last = Array.from({ length: b.length + 1 }, (_, j) => j);
  for (let i = 1; i <= a.length; i += 1) {
    const row = [i];
    for (let j = 1; j <= b.length; j += 1) {
      const replace = (last[j - 1] ?? 0) + (a[i - 1] === b[j - 1] ? 0 : 1);
      let best = Math.min((last[j] ?? 0) + 1, (row[j - 1] ?? 0) + 1, replace);
      if (i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1]) {
        best = Math.min(best, (beforeLast[j - 2] ?? 0) + 1);
      }
      row.push(best);
    }
    beforeLast = last;
    last = row;
  }
  return last[b.length] ?? 0;
}

export function nearest(word: string, known: readonly string[]): string | null {
  const lower = word.toLowerCase().slice(0, 100);
  let best: { word: string; edits: number } | null = null;
  for (const candidate of known) {
    const edits = distance(lower, candidate.toLowerCase());
    if (edits <= Math.max(1, Math.floor(candidate.length / 3)) && (best === null || edits < best.edits)) {
      best = { word: candidate, edits };
    }
  }
  return best?.word ?? null;
}
