/** An emulation of the Document Recognition Service, written from its interface alone. */

export { type Emulator, startEmulator, type VerbatimSpec } from './emulator.js';
export { type DocumentType, documentTypes } from './model/catalogue.js';
export { type Fault, type FaultInput, type FaultKind, faultKinds, type Operation } from './model/fault-types.js';
export type { RequestListener, RequestLog, RequestRecord } from './model/request-log.js';
export type { ScriptedAnswer } from './model/run-scripts.js';
export type { Correction, RunSpec } from './model/run-spec-types.js';
export type { Environment, RunVersion, Status, Withheld } from './model/runs.js';
export type { Content } from './model/sequence.js';
export type { Switches, SwitchesPatch } from './model/switch-types.js';
export { type ApiKey, defaultApiKey, defaultOptions, type EmulatorOptions } from './options.js';
