/** The dependencies a test job uses; touching any other is a fault of the test. */
import type { Deps } from '../../src/deps.ts';

export function depsWith(some: Partial<Deps>): Deps {
  return new Proxy(some, {
    get(target, name) {
      if (name === 'then') return undefined;
      if (!(name in target)) throw new Error(`this test gives no deps.${String(name)}`);
      return target[name as keyof Deps];
    },
  }) as Deps;
}
