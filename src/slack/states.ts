/** Request states as lists, for the Store's filters. */
import { requestStates, type RequestState } from '../requests/types.ts';

const open: ReadonlySet<RequestState> = new Set<RequestState>(['draft', 'pending', 'approved', 'running']);
export const openStates = requestStates.filter((s) => open.has(s));
export const endedStates = requestStates.filter((s) => !open.has(s));
