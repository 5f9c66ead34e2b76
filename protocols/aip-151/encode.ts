// Owns what goes out on an AIP-151 server: which argument rides where, and the URL of each request. Pure.
// Must never hold a credential: headers are the exchange's.

import type { JsonObject, JsonValue } from '../../operation/json.js';
import type { DeclaredMethod } from '../declared-method.js';
import { isObject } from '../json-members.js';
import {
  encodeText,
  expandTemplate,
  parseTemplate,
  TemplateValueError,
  variablesOf,
  type PathTemplate,
} from './path-template.js';

export interface RestRequest {
  readonly verb: DeclaredMethod['verb'];
  readonly url: string;
  readonly body: string | null;
}

/** @throws TemplateValueError */
export function submitRequest(baseUrl: string, method: DeclaredMethod, args: JsonObject): RestRequest {
  const template = templateOf(method.path);
  const bound = new Set(variablesOf(template).map(({ name }) => name));
  const rest = Object.entries(args).filter(([name]) => !bound.has(name));
  const { path, query } = expandTemplate(template, (name) => textAt(args, name));
  const isBody = ([name]: readonly [string, JsonValue]): boolean =>
    method.body === '*' || method.body === name;
  const inQuery = rest.filter((entry) => !isBody(entry)).flatMap(([name, value]) => queryPairs(name, value));
  return {
    verb: method.verb,
    url: urlUnder(baseUrl, path, [query, ...inQuery]),
    body: bodyOf(method, Object.fromEntries(rest.filter(isBody)), args),
  };
}

function bodyOf({ body }: DeclaredMethod, taken: JsonObject, args: JsonObject): string | null {
  if (body === null) return null;
  return JSON.stringify(body === '*' ? taken : (args[body] ?? {}));
}

/** A path below the server's URL, whose own query goes with it. @throws TemplateValueError */
function urlUnder(baseUrl: string, path: string, queries: readonly string[]): string {
  const base = new URL(baseUrl);
  const pathname = base.pathname.replace(/\/$/, '') + path;
  const query = [base.search.slice(1), ...queries].filter((part) => part !== '').join('&');
  const url = `${base.origin}${pathname}${query === '' ? '' : `?${query}`}`;
  // What the URL parser would change is another path than the one that was meant.
  if (new URL(url).pathname !== pathname) throw new TemplateValueError('the path does not survive a URL');
  return url;
}

/** The URL of one of the operation's own methods. @throws TemplateValueError */
export function operationUrl(baseUrl: string, template: string, name: string): string {
  const { path, query } = expandTemplate(templateOf(template), () => name);
  return urlUnder(baseUrl, path, [query]);
}

/** One page of the list in which a lost submission's operation is looked for. @throws TemplateValueError */
export function listUrl(
  baseUrl: string,
  template: string,
  args: JsonObject,
  pageToken: string | null,
): string {
  const { path, query } = expandTemplate(templateOf(template), (name) => textAt(args, name));
  const page = pageToken === null ? [] : [`pageToken=${encodeURIComponent(pageToken)}`];
  return urlUnder(baseUrl, path, [query, ...page]);
}

/** Templates were read when the configuration was: one that is wrong here came from nowhere good. */
function templateOf(text: string): PathTemplate {
  const parsed = parseTemplate(text);
  if (parsed.kind === 'mistake') throw new TemplateValueError(`a path template ${parsed.message}`);
  return parsed.template;
}

/** The argument at a dotted path, as the text that stands in a path. @throws TemplateValueError */
export function textAt(args: JsonObject, name: string): string {
  let value: JsonValue | undefined = args;
  for (const member of name.split('.')) {
    value = isObject(value) && Object.hasOwn(value, member) ? value[member] : undefined;
  }
  if (typeof value === 'string') return value;
  if (typeof value === 'number' || typeof value === 'boolean') return String(value);
  throw new TemplateValueError(`the argument "${name}" is no text, number or boolean`);
}

/** Why no request can be made of these arguments, or null: asked before anything is claimed. */
export function objectionTo(baseUrl: string, method: DeclaredMethod, args: JsonObject): string | null {
  try {
    submitRequest(baseUrl, method, args);
    return null;
  } catch (error) {
    if (error instanceof TemplateValueError) return error.message;
    throw error;
  }
}

/** As google.api.http maps a field to the query: repeated for each element, dotted for each member. */
function queryPairs(name: string, value: JsonValue): readonly string[] {
  if (value === null) return [];
  if (Array.isArray(value)) return value.flatMap((element: JsonValue) => queryPairs(name, element));
  if (isObject(value)) {
    return Object.entries(value).flatMap(([member, inner]) => queryPairs(`${name}.${member}`, inner));
  }
  return [`${encodeText(name, name)}=${encodeText(name, String(value as string | number | boolean))}`];
}
