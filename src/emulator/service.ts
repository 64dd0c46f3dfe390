import { z } from 'zod';
import { documentTypes } from './model/catalogue.js';
import { FaultBox } from './model/faults.js';
import { Organization } from './model/organization.js';
import { Refusal } from './model/refusal.js';
import { RequestLog } from './model/request-log.js';
import { RunScripts } from './model/run-scripts.js';
import type { Switches, SwitchesPatch } from './model/switch-types.js';
import { switchesSchema } from './model/switches.js';
import type { EmulatorOptions } from './options.js';

/** The state of the service: organizations, switches, faults, scripts and the clock. */
export class Service {
  readonly requests = new RequestLog();
  readonly runScripts = new RunScripts();
  readonly faults: FaultBox;
  readonly #keys: ReadonlyMap<string, string | null>;
  readonly #organizations = new Map<string, Organization>();
  #switches: Switches;
  #latest = Number.NEGATIVE_INFINITY;

  constructor(readonly options: EmulatorOptions) {
    this.#keys = new Map(options.apiKeys.map(({ key, organization }) => [key, organization]));
    this.faults = new FaultBox(options.seed);
    this.#switches = switchesSchema.parse(options.switches);
    this.faults.list = this.#switches.faults;
    const startMs = this.now();
    for (const { organization: name } of options.apiKeys) {
      if (name === null || this.#organizations.has(name)) continue;
      this.#organizations.set(name, new Organization({ ...options, name, startMs }, this.#switches));
    }
  }

  get switches(): Switches {
    return { ...this.#switches, faults: [...this.faults.list] };
  }

  get organizations(): readonly Organization[] {
    return [...this.#organizations.values()];
  }

  /** Returns the service's clock, which its `Date` header shows, in whole milliseconds since 1970. */
  clock(): number {
    return Math.floor(this.options.now() + this.#switches.clockOffsetMs);
  }

  /** Returns the clock of the sequence, which never goes back. */
  now(): number {
    this.#latest = Math.max(this.#latest, this.clock());
    return this.#latest;
  }

  /** Changes switches. @throws ZodError if one is invalid; nothing changes then */
  patch(patch: SwitchesPatch): Switches {
    const changes = z.record(z.string(), z.unknown()).parse(patch);
    const switches = switchesSchema.parse({ ...this.switches, ...changes });
    const before = this.now();
    for (const organization of this.organizations) organization.advance(before);
    this.#switches = switches;
    this.faults.list = switches.faults;
    for (const organization of this.organizations) organization.reconfigure(this.#switches, this.now());
    return this.switches;
  }

  /** Returns an organization by name, by default the first one. */
  organization(name?: string): Organization {
    const found = name === undefined ? this.organizations[0] : this.#organizations.get(name);
    if (found === undefined) throw new RangeError(`no such organization: ${name ?? '(there is none)'}`);
    return found;
  }

  /** Returns the organization of a request (interface 5). */
  authenticate(authorization: string | undefined): Organization {
    const key = /^Bearer +(\S+)$/i.exec(authorization ?? '')?.[1];
    const organization = key === undefined ? undefined : this.#keys.get(key);
    if (organization === undefined) throw new Refusal(401, 'API-Schlüssel fehlt oder ist ungültig.');
    if (organization === null) throw new Refusal(403, 'Der API-Schlüssel ist keiner Organisation zugeordnet.');
    return this.organization(organization);
  }

  /** @throws Refusal 404 if the slug is unknown */
  requireDocumentType(slug: string): void {
    if (documentTypes.some((type) => type.slug === slug)) return;
    throw new Refusal(404, `Der Dokumenttyp „${slug}“ wurde nicht gefunden.`);
  }
}
