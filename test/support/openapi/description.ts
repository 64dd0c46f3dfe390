import type { ErrorObject, ValidateFunction } from 'ajv';
import { Ajv2020 } from 'ajv/dist/2020.js';
import addFormats from 'ajv-formats';

type Json = Readonly<Record<string, unknown>>;

interface Schema extends Json {
  readonly type?: string | readonly string[];
}

interface Parameter {
  readonly name: string;
  readonly in: 'query' | 'header' | 'path';
  readonly required?: boolean;
  readonly schema: Schema;
}

interface Response {
  readonly headers?: Readonly<Record<string, { readonly required?: boolean; readonly schema: Schema }>>;
  readonly content?: Readonly<Record<string, { readonly schema: Schema }>>;
}

interface Operation {
  readonly parameters?: readonly Parameter[];
  readonly requestBody?: {
    readonly required?: boolean;
    readonly content: Readonly<Record<string, { schema: Schema }>>;
  };
  readonly responses: Readonly<Record<string, Response | { readonly $ref: string }>>;
  readonly security?: readonly unknown[];
}

/** An OpenAPI 3.1 document, as far as it is used here. */
export interface OpenApi {
  readonly paths: Readonly<Record<string, Readonly<Record<string, Operation>>>>;
  readonly security?: readonly unknown[];
  readonly components: { readonly schemas: Readonly<Record<string, Json>>; readonly responses?: Readonly<Json> };
}

export type Values = Readonly<Record<string, unknown>>;

export interface Request {
  readonly method: string;
  /** Below the server's address, without the query. */
  readonly path: string;
  readonly query: Values;
  /** Names in lower case. */
  readonly headers: Values;
  /** As text, or a form as an object; undefined where it is not known. */
  readonly body?: unknown;
}

export interface Answer {
  readonly status: number;
  /** Names in lower case. */
  readonly headers: Values;
  readonly body: string;
}

/**
 * Says in what requests and responses differ from a description. The schemas of `closed` allow no members but those that
 * are described: the emulator makes nothing up, whatever the service may add one day.
 */
export class Description {
  readonly #document: OpenApi;
  readonly #ajv = new Ajv2020({ strict: false, allErrors: true });
  readonly #validators = new Map<object, ValidateFunction>();

  constructor(document: OpenApi, closed: readonly string[] = []) {
    const schemas = Object.entries(document.components.schemas).map(([name, schema]) => [
      name,
      closed.includes(name) ? { ...schema, unevaluatedProperties: false } : schema,
    ]);
    this.#document = { ...document, components: { ...document.components, schemas: Object.fromEntries(schemas) } };
    addFormats.default(this.#ajv);
    this.#ajv.addSchema(this.#document as unknown as Json, 'description');
  }

  /** In what a request differs; `surplus` are query parameters that are not described. */
  ofRequest(request: Request): { readonly differences: string[]; readonly surplus: string[] } {
    const operation = this.#operation(request);
    if (operation === undefined)
      return { differences: [`${request.method} ${request.path} is not described`], surplus: [] };
    const parameters = operation.parameters ?? [];
    const differences = parameters.flatMap((parameter) => this.#ofParameter(parameter, request));
    const secured = (operation.security ?? this.#document.security ?? []).length > 0;
    if (secured && !/^Bearer \S+$/i.test(String(request.headers.authorization))) differences.push('no bearer token');
    const known = new Set(parameters.filter((one) => one.in === 'query').map(({ name }) => name));
    const surplus = Object.keys(request.query).filter((name) => !known.has(name));
    return { differences: [...differences, ...this.#ofRequestBody(operation, request)], surplus };
  }

  /** In what the response to a request differs. A status that is not described by itself is `unlisted`. */
  ofAnswer(request: Request, answer: Answer): { readonly differences: string[]; readonly unlisted: boolean } {
    const operation = this.#operation(request);
    const listed = operation?.responses[answer.status];
    const found = listed ?? operation?.responses.default;
    if (found === undefined) return { differences: [`the status ${answer.status} is not described`], unlisted: true };
    const response = this.#resolved(found);
    const differences = Object.entries(response.headers ?? {}).flatMap(([name, { required, schema }]) => {
      const value = answer.headers[name.toLowerCase()];
      if (value === undefined) return required === true ? [`the header ${name} is missing`] : [];
      return this.#of(schema, value, `header ${name}`);
    });
    const type = mediaType(answer.headers);
    const schema = response.content?.[type]?.schema;
    if (schema === undefined) differences.push(`the content type ${type} is not described`);
    else differences.push(...this.#of(schema, parsed(answer.body), 'body'));
    return { differences, unlisted: listed === undefined };
  }

  #operation({ method, path }: Request): Operation | undefined {
    for (const [template, item] of Object.entries(this.#document.paths)) {
      if (matches(template, path)) return item[method.toLowerCase()];
    }
    return undefined;
  }

  #ofParameter({ name, in: place, required, schema }: Parameter, { query, headers }: Request): string[] {
    if (place === 'path') return [];
    const value = place === 'query' ? query[name] : headers[name.toLowerCase()];
    if (value === undefined) return required === true ? [`${place} ${name} is missing`] : [];
    return this.#of(schema, typeof value === 'string' ? deserialized(value, schema) : value, `${place} ${name}`);
  }

  #ofRequestBody({ requestBody }: Operation, { headers, body }: Request): string[] {
    if (requestBody === undefined) return [];
    const type = mediaType(headers);
    const content = requestBody.content[type];
    if (content === undefined) {
      return type === '' && requestBody.required !== true ? [] : [`a body of the type "${type}" is not described`];
    }
    if (body === undefined) return [];
    return this.#of(content.schema, type === 'application/json' ? parsed(String(body)) : body, 'body');
  }

  #resolved(response: Response | { readonly $ref: string }): Response {
    if (!('$ref' in response)) return response;
    return this.#document.components.responses?.[String(response.$ref).split('/').at(-1) ?? ''] as Response;
  }

  #of(schema: Schema, value: unknown, what: string): string[] {
    const validate = this.#validators.get(schema) ?? this.#ajv.compile(rooted(schema));
    this.#validators.set(schema, validate);
    return validate(value) ? [] : telling(validate.errors ?? []).map((error) => `${what}${said(error)}`);
  }
}

/** Where a part does not fit, all of its members count as not looked at: of no use beside the reason. */
function telling(errors: readonly ErrorObject[]): readonly ErrorObject[] {
  const reasons = errors.filter(({ keyword }) => keyword !== 'unevaluatedProperties' && keyword !== 'if');
  return reasons.length > 0 ? reasons : errors;
}

const said = ({ instancePath, message, params }: ErrorObject): string =>
  `${instancePath} ${message} ${JSON.stringify(params)}`;

/** References lead into the whole document. */
function rooted(schema: Schema): Schema {
  return JSON.parse(JSON.stringify(schema).replaceAll('"$ref":"#/', '"$ref":"description#/')) as Schema;
}

function matches(template: string, path: string): boolean {
  const wanted = template.split('/');
  const given = path.split('/');
  return (
    wanted.length === given.length &&
    wanted.every((part, i) => (part.startsWith('{') ? given[i] !== '' : part === given[i]))
  );
}

/** A parameter's text as its schema means it: lists in the style "form" without exploding. */
function deserialized(text: string, { type }: Schema): unknown {
  if (type === 'array') return text.split(',');
  if (type === 'integer') return /^-?\d+$/.test(text) ? Number(text) : text;
  return text;
}

const mediaType = (headers: Values): string =>
  String(headers['content-type'] ?? '')
    .split(';')[0]
    ?.trim() ?? '';

/** Undefined where the text is no JSON, which no schema with a type takes. */
function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
