/** The Document Recognition Service, emulated after its interface alone. */
export { documentTypes } from './catalogue.js';
export { type Emulator, startEmulator, type VerbatimSpec } from './emulator.js';
export { type Fault, type FaultInput, type FaultKind, faultKinds, type Operation } from './faults.js';
export { type ApiKey, defaultApiKey, defaultOptions, type EmulatorOptions } from './options.js';
export type { RequestListener, RequestLog, RequestRecord } from './requests.js';
export type { ScriptedAnswer } from './run-scripts.js';
export type { Correction, RunSpec } from './run-specs.js';
export type { Environment, RunVersion, Status, Withheld } from './runs.js';
export type { Content } from './sequence.js';
export { defaultSwitches, type Switches, type SwitchesPatch, switchesSchema } from './switches.js';
