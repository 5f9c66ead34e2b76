// Owns reading one entry of `operationServers`: a server of declared methods (AIP-151). The map is ours alone, so an
// unknown key in it is a mistake. Must never put a value into an error text.

import type { JsonObject, JsonValue } from '../operation/json.js';
import type { DeclaredMethod } from '../protocols/declared-method.js';
import { parseTemplate, variablesOf } from '../protocols/aip-151/path-template.js';
import type { ToolServer } from '../protocols/adapter.js';
import { readAuth } from './auth-settings.js';
import { listOf } from './configuration-error.js';
import type { ToolSettings } from './durable-settings.js';
import { nearestWord } from './nearest-word.js';
import { methodSettingsOf, operationSettings } from './operation-settings.js';
import {
  checkHeader,
  checkServerName,
  isEntries,
  type Keys,
  mistake,
  type Reading,
  readTexts,
  readUrl,
} from './reading.js';

const ENTRY_KEYS = ['url', 'headers', 'durable'];

export interface ReadOperationServer {
  readonly server: ToolServer;
  readonly tools: Readonly<Record<string, ToolSettings>>;
  readonly maxResultBytes?: number;
  readonly unavailable: null;
}

export function readOperationServer(
  name: string,
  entry: unknown,
  reading: Reading,
): ReadOperationServer | null {
  const keys = ['operationServers', name];
  checkServerName(keys, name, reading);
  if (!isEntries(entry)) {
    mistake(reading, keys, `must be an object with the keys ${listOf(ENTRY_KEYS)}`);
    return null;
  }
  for (const key of Object.keys(entry).filter((own) => !ENTRY_KEYS.includes(own))) {
    const near = nearestWord(key, ENTRY_KEYS);
    const message = `unknown key ${JSON.stringify(key)} (nearest: "${near}"); allowed: ${listOf(ENTRY_KEYS)}`;
    mistake(reading, keys, message);
  }
  const url = readUrl([...keys, 'url'], entry['url'], reading);
  const headers = readTexts([...keys, 'headers'], entry['headers'], reading, checkHeader);
  const durable = readDurable([...keys, 'durable'], entry['durable'], reading);
  if (!durable) return null;
  const { methods, tools, maxPollsPerSecond, maxResultBytes } = durable;
  const everyHeader = [headers, ...Object.values(methods).map((method) => method.headers)];
  const beside = { isProgram: false, headers: Object.assign({}, ...everyHeader) as typeof headers };
  const auth = readAuth([...keys, 'durable', 'auth'], durable.auth, beside, reading);
  const settings = { protocol: 'aip-151', maxPollsPerSecond, trustAnnotations: false, methods } as const;
  return {
    server: { name, url, headers, ...(auth ? { auth } : {}), ...settings },
    tools,
    ...(maxResultBytes === undefined ? {} : { maxResultBytes }),
    unavailable: null,
  };
}

function readDurable(keys: Keys, given: unknown, reading: Reading) {
  const headers = methodHeaders(keys, given, reading);
  const parsed = operationSettings.safeParse(given);
  if (!parsed.success) {
    for (const { path, message } of parsed.error.issues) mistake(reading, [...keys, ...path], message);
    return null;
  }
  const { maxPollsPerSecond, maxResultBytes, tools: declared } = parsed.data;
  const read = Object.entries(declared).map(([tool, settings]) => {
    const { method, settings: own } = methodSettingsOf(settings, parsed.data);
    checkArguments([...keys, 'tools', tool], method, reading);
    return { tool, own, method: { ...method, headers: headers.get(tool) ?? {} } };
  });
  return {
    auth: parsed.data.auth,
    maxPollsPerSecond,
    maxResultBytes,
    tools: Object.fromEntries(read.map(({ tool, own }) => [tool, own])),
    methods: Object.fromEntries(read.map(({ tool, method }) => [tool, method])),
  };
}

/** Read beside the rest, so that all mistakes are told at once. */
function methodHeaders(
  keys: Keys,
  given: unknown,
  reading: Reading,
): ReadonlyMap<string, Readonly<Record<string, string>>> {
  const tools = isEntries(given) && isEntries(given['tools']) ? given['tools'] : {};
  return new Map(
    Object.entries(tools).flatMap(([tool, settings]) => {
      if (!isEntries(settings)) return [];
      const path = [...keys, 'tools', tool, 'headers'];
      return [[tool, readTexts(path, settings['headers'], reading, checkHeader)] as const];
    }),
  );
}

/** Arguments that the method needs but its schema does not know would be refused call by call. */
function checkArguments(keys: Keys, method: Omit<DeclaredMethod, 'headers'>, reading: Reading): void {
  const known = propertiesOf(method.inputSchema);
  if (known === null) return;
  const { path, body, operation } = method;
  const { list } = operation;
  const needed: readonly (readonly [Keys, string])[] = [
    ...argumentsOf(path).map((name) => [['path'], name] as const),
    ...(body === null || body === '*' ? [] : [[['body'], body] as const]),
    ...(list === null
      ? []
      : argumentsOf(list.path).map((name) => [['operation', 'list', 'path'], name] as const)),
  ];
  for (const [at, name] of needed) {
    if (known.includes(name)) continue;
    const near = nearestWord(name, known);
    const hint = near === undefined ? 'it has none' : `nearest: "${near}"`;
    mistake(
      reading,
      [...keys, ...at],
      `needs the argument "${name}", which "inputSchema" does not have (${hint})`,
    );
  }
}

function argumentsOf(path: string): readonly string[] {
  const parsed = parseTemplate(path);
  if (parsed.kind === 'mistake') return [];
  return variablesOf(parsed.template).map(({ name }) => name.split('.')[0] ?? name);
}

function propertiesOf(schema: JsonObject | null): readonly string[] | null {
  const properties: JsonValue | undefined = schema?.['properties'];
  return isEntries(properties) ? Object.keys(properties) : null;
}
