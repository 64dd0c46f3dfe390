/**
 * The interfaces through which the engine uses the outside. `service/`, `storage/` and `observability/` implement
 * them; the engine imports none of them, so that it runs under a virtual clock in simulation.
 */
export type * from './commits.js';
export type * from './entries.js';
export type * from './observer.js';
export type * from './passes.js';
export type * from './service.js';
export type * from './store.js';
