/** From a host name of reclaim.yaml to its Box, over ssh. */
import type { OpenBox } from '../box.ts';
import { ReclaimError } from '../errors.ts';
import { boxOver } from './host-program.ts';
import { createRoad, type Road, type RoadSettings } from './road.ts';
import { openSshTransport } from './ssh-transport.ts';

export interface Boxes {
  readonly openBox: OpenBox;
  /** For `reclaim trust`. */
  readonly road: Road;
  /** Ends every connection, in use or kept. Call it when the process stops. */
  close(): void;
}

/**
 * With `limits.idleMs` a connection is kept for the next job of its host; a process that keeps some must end with
 * close(), because they hold it open.
 */
export function openBoxes(settings: RoadSettings): Boxes {
  const road = createRoad(settings);
  return {
    road,
    async openBox(name, { signal } = {}) {
      const host = settings.hosts.get(name);
      if (host === undefined) {
        throw new ReclaimError('host_unknown', `There is no host "${name}" in reclaim.yaml, so nothing was connected.`);
      }
      const transport = await openSshTransport(road, host, signal);
      return boxOver(transport, { privilege: host.privilege, clock: settings.clock, signal });
    },
    close() {
      road.close();
    },
  };
}
