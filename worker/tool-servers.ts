// Owns reading `tool-servers.json`: the `mcpServers` file people already have, with our settings under one key
// `durable` per server. Foreign keys are none of its business. Must never put a value into an error text or note.

import { readFile } from 'node:fs/promises';
import { LIMITS } from '../operation/limits.js';
import type { OperationPolicy } from '../operation/row.js';
import type { ToolServer } from '../protocols/adapter.js';
import { readAuth } from './auth-settings.js';
import { ConfigurationError, listOf, pathOf } from './configuration-error.js';
import {
  DURABLE_KEYS,
  type DurableSettings,
  durableSettings,
  type ToolSettings,
} from './durable-settings.js';
import type { Environment } from './environment-references.js';
import { editDistance } from '../primitives/edit-distance.js';
import { nearestWord } from './nearest-word.js';
import { readOperationServer } from './operation-servers.js';
import { readProgram } from './program-settings.js';
import {
  checkHeader,
  checkServerName,
  isEntries,
  type JsonEntries,
  type Keys,
  mistake,
  pathNote,
  type Reading,
  readTexts,
  readUrl,
} from './reading.js';

export { ConfigurationError };

export interface ConfiguredServer {
  /** `url` is empty for a program, and where the server is unavailable. */
  readonly server: ToolServer;
  readonly tools: Readonly<Record<string, ToolSettings>>;
  /** Of every tool that says nothing else (bytes); absent: the default. */
  readonly maxResultBytes?: number;
  /** Why the server cannot be used, as a sentence; null where it can. */
  readonly unavailable: string | null;
}

export interface ToolServersConfig {
  readonly servers: ReadonlyMap<string, ConfiguredServer>;
  /** Sentences for people: servers that cannot be used, keys that are probably misplaced. */
  readonly notes: readonly string[];
}

/** @throws ConfigurationError where the file cannot be read, is no JSON, or holds a mistake. */
export async function loadToolServers(file: string, env: Environment): Promise<ToolServersConfig> {
  let text: string;
  try {
    text = await readFile(file, 'utf8');
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? String(error.code) : 'no code';
    throw new ConfigurationError({ path: file, message: `cannot be read (${code})` });
  }
  return parseToolServers(parseJson(file, text), env);
}

/**
 * Validates everything and reports all mistakes at once.
 *
 * @throws ConfigurationError
 */
export function parseToolServers(json: unknown, env: Environment): ToolServersConfig {
  const reading: Reading = { env, mistakes: [], notes: [] };
  const servers = new Map<string, ConfiguredServer>();
  for (const [name, entry] of serverEntries(json, reading)) {
    const configured = readServer(name, entry, reading);
    if (configured) servers.set(name, configured);
  }
  for (const [name, entry] of operationServerEntries(json, reading)) {
    const configured = readOperationServer(name, entry, reading);
    if (configured) servers.set(name, configured);
  }
  const [first, ...more] = reading.mistakes;
  if (first) throw new ConfigurationError(first, ...more);
  return { servers, notes: reading.notes };
}

/** The policy of one new operation. A wait budget of the caller counts before the configured one. */
export function policyOf(
  config: ConfiguredServer | undefined,
  tool: string,
  overrides: { readonly waitBudgetMs?: number | undefined } = {},
): OperationPolicy {
  const settings = config?.tools[tool];
  const waitBudgetMs = overrides.waitBudgetMs ?? settings?.waitBudgetMs ?? null;
  const maxResultBytes = settings?.maxResultBytes ?? config?.maxResultBytes;
  return {
    waitBudgetMs: waitBudgetMs ?? LIMITS.waitBudgetMs,
    waitBudgetExplicit: waitBudgetMs !== null,
    submitBudgetMs: LIMITS.submitBudgetMs,
    lookUpBudgetMs: LIMITS.lookUpBudgetMs,
    settleBudgetMs: LIMITS.settleBudgetMs,
    fetchBudgetMs: LIMITS.fetchBudgetMs,
    inputBudgetMs: LIMITS.inputBudgetMs,
    synchronousBoundMs: settings?.synchronousBoundMs ?? LIMITS.synchronousBoundMs,
    ...(maxResultBytes === undefined ? {} : { maxResultBytes }),
    submissionPolicy: settings?.submission?.policy ?? null,
    keyName: settings?.submission?.keyName ?? settings?.requestId?.field ?? null,
    ...(settings?.descriptorDigest === undefined ? {} : { descriptorDigest: settings.descriptorDigest }),
    ...(settings?.submission?.lookUp ? { lookUp: settings.submission.lookUp } : {}),
    ...(settings?.requestId ? { requestIdWindowMs: settings.requestId.windowMs } : {}),
    ...(settings?.job ? { job: settings.job } : {}),
    sideEffects: settings?.sideEffects ?? 'unknown',
    protocol: config?.server.protocol ?? 'auto',
    onUnresolved: settings?.onUnresolved ?? { kind: 'hold' },
  };
}

type Transport = 'http' | 'stdio' | 'sse';

/** Why a server of that transport cannot be used. */
const UNAVAILABLE: Readonly<Record<Transport, string | null>> = {
  http: null,
  stdio: null,
  sse: 'the HTTP+SSE transport of 2024-11-05 is not supported; give the streamable HTTP URL.',
};
const HTTP_TYPES = ['http', 'streamable-http', 'streamableHttp'];

function parseJson(file: string, text: string): unknown {
  try {
    return JSON.parse(text);
  } catch (error) {
    // The engine's own message quotes the text, secrets and all; only its position is safe.
    const [, position] = /at position (\d+)/.exec(error instanceof Error ? error.message : '') ?? [];
    const where =
      position === undefined ? '' : ` (line ${text.slice(0, Number(position)).split('\n').length})`;
    throw new ConfigurationError({ path: file, message: `is not valid JSON${where}` });
  }
}

const SERVER_MAPS = ['mcpServers', 'operationServers'];

function serverEntries(json: unknown, reading: Reading): readonly [string, unknown][] {
  const isWithout = isEntries(json) && !('mcpServers' in json) && 'operationServers' in json;
  if (isEntries(json) && (isWithout || isEntries(json['mcpServers']))) {
    for (const key of Object.keys(json)) noteMisspelt(pathOf([key]), key, SERVER_MAPS, reading);
    if ('durable' in json) mistake(reading, ['durable'], 'belongs under one server: mcpServers.NAME.durable');
    return Object.entries((json['mcpServers'] as JsonEntries | undefined) ?? {});
  }
  const strangers = isEntries(json) ? Object.keys(json).filter((key) => !SERVER_MAPS.includes(key)) : [];
  const near = strangers.find((key) => SERVER_MAPS.some((known) => editDistance(key, known) <= 2));
  const hint = near === undefined ? '' : `; did you mean it by ${JSON.stringify(near)}?`;
  mistake(reading, ['mcpServers'], `must be an object with one key per server, each with a "url"${hint}`);
  return [];
}

/** Servers of declared methods (AIP-151): they have a map of their own, because other programs would take them for MCP. */
function operationServerEntries(json: unknown, reading: Reading): readonly [string, unknown][] {
  const given = isEntries(json) ? json['operationServers'] : undefined;
  if (given === undefined) return [];
  if (!isEntries(given)) {
    const message =
      'must be an object with one key per server, each with a "url" and its methods in "durable.tools"';
    mistake(reading, ['operationServers'], message);
    return [];
  }
  const taken = isEntries(json) && isEntries(json['mcpServers']) ? json['mcpServers'] : {};
  for (const name of Object.keys(given).filter((own) => Object.hasOwn(taken, own))) {
    mistake(
      reading,
      ['operationServers', name],
      'is the name of a server under "mcpServers" too; rename one of them',
    );
  }
  return Object.entries(given);
}

function readServer(name: string, entry: unknown, reading: Reading): ConfiguredServer | null {
  const keys = ['mcpServers', name];
  checkServerName(keys, name, reading);
  if (!isEntries(entry)) {
    mistake(reading, keys, 'must be an object with a "url" (or a "command")');
    return null;
  }
  noteMisplaced(keys, entry, reading);
  const settings = readDurable([...keys, 'durable'], entry['durable'], reading);
  const transport = transportOf(keys, entry, reading);
  const unavailable = transport && UNAVAILABLE[transport];
  if (unavailable !== null) pathNote(reading, keys, unavailable);
  const isProgram = transport === 'stdio';
  const program = isProgram ? readProgram(keys, entry, reading) : {};
  if (transport === 'http') noteProgramKeys(keys, entry, reading);
  const url = transport === 'http' ? readUrl([...keys, 'url'], entry['url'], reading) : '';
  const headers = isProgram ? {} : readTexts([...keys, 'headers'], entry['headers'], reading, checkHeader);
  const auth = readAuth([...keys, 'durable', 'auth'], settings.auth, { isProgram, headers }, reading);
  const { protocol, maxPollsPerSecond, trustAnnotations, tools, maxResultBytes } = settings;
  return {
    server: {
      name,
      url,
      headers,
      ...(auth ? { auth } : {}),
      ...program,
      protocol,
      maxPollsPerSecond,
      trustAnnotations,
    },
    tools,
    ...(maxResultBytes === undefined ? {} : { maxResultBytes }),
    unavailable,
  };
}

function noteProgramKeys(keys: Keys, entry: JsonEntries, reading: Reading): void {
  for (const key of ['command', 'args', 'env', 'cwd'])
    if (entry[key] !== undefined) pathNote(reading, [...keys, key], 'is ignored beside "url".');
}

function noteMisplaced(keys: Keys, entry: JsonEntries, reading: Reading): void {
  for (const key of Object.keys(entry)) {
    const path = pathOf([...keys, key]);
    if (key !== 'durable' && editDistance(key, 'durable') <= 2)
      reading.notes.push(`${path}: is ignored; did you mean "durable"?`);
    // "tools" beside "url" is a foreign key that other programs use.
    if (key !== 'tools' && DURABLE_KEYS.includes(key))
      reading.notes.push(`${path}: is ignored here; it belongs under "durable".`);
    noteMisspelt(path, key, ENTRY_KEYS, reading);
  }
}

/** What we read of an entry beside `durable`. */
const ENTRY_KEYS = ['type', 'url', 'headers', 'command', 'args', 'env', 'cwd'];

/** Other programs keep keys of their own here: only what looks like a slip of one of ours is told. */
function noteMisspelt(path: string, key: string, known: readonly string[], reading: Reading): void {
  if (known.includes(key)) return;
  const near = nearestWord(key, known) ?? '';
  // One slip in a short word, two in a long one: "uri" is meant for "url", "id" for nothing of ours.
  if (editDistance(key, near) <= (near.length > 5 ? 2 : 1))
    reading.notes.push(`${path}: is ignored; did you mean "${near}"?`);
}

const DEFAULTS: DurableSettings = durableSettings.parse({});

function readDurable(keys: Keys, given: unknown, reading: Reading): DurableSettings {
  if (given === undefined) return DEFAULTS;
  const parsed = durableSettings.safeParse(given);
  if (!parsed.success) {
    for (const { path, message } of parsed.error.issues) mistake(reading, [...keys, ...path], message);
    return DEFAULTS;
  }
  for (const [tool, { submission, sideEffects }] of Object.entries(parsed.data.tools)) {
    if (submission?.policy !== 'repeatable' || sideEffects === 'none' || parsed.data.trustAnnotations)
      continue;
    const message =
      '"repeatable" needs "sideEffects": "none" on the tool, or "trustAnnotations": true on the server';
    mistake(reading, [...keys, 'tools', tool, 'submission', 'policy'], message);
  }
  return parsed.data;
}

/** Which transport the entry is for; null where that is the mistake. */
function transportOf(keys: Keys, entry: JsonEntries, reading: Reading): Transport | null {
  const { type, url, command } = entry;
  if (type === undefined) {
    if (url !== undefined && command === undefined) return 'http';
    if (url === undefined && command !== undefined) return 'stdio';
    const message =
      url === undefined
        ? 'needs a "url" (streamable HTTP) or a "command" (stdio)'
        : 'has both "url" and "command"; keep one, or say which counts with "type"';
    mistake(reading, keys, message);
    return null;
  }
  if (type === 'stdio' || type === 'sse') return type;
  if (typeof type === 'string' && HTTP_TYPES.includes(type)) return 'http';
  mistake(reading, [...keys, 'type'], `must be ${listOf([...HTTP_TYPES, 'stdio', 'sse'])}`);
  return null;
}
