/**
 * The interfaces through which the engine uses the outside. `service/`, `storage/` and `observability/` implement
 * them; the engine imports none of them, so that it runs under a virtual clock in simulation.
 */
export type * from './ports/clock.js';
export type * from './ports/entries.js';
export type * from './ports/observer.js';
export type * from './ports/passes.js';
export type * from './ports/service.js';
export type * from './ports/store.js';
