/** What the configuration says about incidents; the shares have their defaults where nothing is watched. */
import type { Config } from '../config/schema.ts';
import type { IncidentSettings } from './incident/state.ts';

export function incidentSettings({ alerts }: Pick<Config, 'alerts'>): IncidentSettings {
  return {
    availableBelow: alerts.watch?.available_below ?? 8,
    recoverAbove: alerts.watch?.recover_above ?? 15,
    reopenWithinMs: alerts.reopen_within,
    measureAgainMinutes: alerts.measure_again_after.map((ms) => ms / 60_000),
  };
}
