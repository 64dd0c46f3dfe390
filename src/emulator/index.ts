/** The Document Recognition Service, emulated after its interface alone. */
export { type DocumentType, defaultDocumentTypes } from './catalogue.js';
export { type Emulator, startEmulator, type VerbatimSpec } from './emulator.js';
export { type FaultKind, faultKinds } from './fault-kinds.js';
export type { Fault, FaultInput, Operation } from './faults.js';
export { type ApiKey, defaultApiKey, defaultOptions, type EmulatorOptions } from './options.js';
export type { RequestListener, RequestLog, RequestRecord } from './requests.js';
export type { ScriptedAnswer } from './run-scripts.js';
export type { Correction, RunSpec } from './run-specs.js';
export type { Environment, RunVersion, Status, Withheld } from './runs.js';
export type { Content } from './sequence.js';
export { defaultSwitches, switchHelp } from './switch-defaults.js';
export type { Switches, SwitchesPatch } from './switches.js';
