/**
 * What the engine needs from outside, in its own words. `service/`, `storage/` and `observability/` fit these
 * shapes; the engine imports none of them, so that it runs under a virtual clock in simulation.
 */
export type * from './ports/clock.js';
export type * from './ports/entries.js';
export type * from './ports/observer.js';
export type * from './ports/passes.js';
export type * from './ports/service.js';
export type * from './ports/store.js';
