/**
 * The interfaces between the engine and its environment. `service/`, `storage/` and `observability/` implement them. The
 * engine imports none of these, so that the simulation can run it under a virtual clock.
 */
export type * from './commits.js';
export type * from './entries.js';
export type * from './observer.js';
export type * from './passes.js';
export type * from './service.js';
export type * from './store.js';
