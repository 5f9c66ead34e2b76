// Owns which `tool-servers.json` a command works with. Must never let a command check against another file than the
// worker that will do the work was configured from.

import { existsSync } from 'node:fs';
import { resolve } from 'node:path';
import { loadToolServers, type ToolServersConfig } from '../worker/tool-servers.js';
import { CommandError } from './exit-codes.js';
import type { EngineNote } from './state-directory.js';

export const DEFAULT_CONFIG_FILE = 'tool-servers.json';

/** The worker that will do the call counts, so its configuration is the one to check against. */
export function configFileOf(given: string | undefined, live: EngineNote | null): string {
  if (!live || live.configFile === null) return resolve(given ?? DEFAULT_CONFIG_FILE);
  if (given !== undefined && resolve(given) !== live.configFile) {
    throw new CommandError(
      `the engine of this state directory (process ${live.pid}) works with ${live.configFile}, not with ` +
        `${resolve(given)}: leave out --config, or use another --state-dir`,
    );
  }
  return live.configFile;
}

/** Reads the file and says what in it is probably not meant. @throws ConfigurationError */
export async function readConfig(file: string, note: (line: string) => void): Promise<ToolServersConfig> {
  const config = await loadToolServers(file, process.env);
  for (const line of config.notes) note(line);
  return config;
}

/** For a command that can do without a worker: a file that was named must be right, the default one may be absent. */
export async function configFileIfAny(
  given: string | undefined,
  note: (line: string) => void,
): Promise<string | null> {
  const file = resolve(given ?? DEFAULT_CONFIG_FILE);
  if (given === undefined && !existsSync(file)) return null;
  await readConfig(file, note);
  return file;
}

/**
 * For a command whose work needs a worker: that of the running engine, or one of its own. Null where a cluster's
 * workers do it.
 * @throws CommandError where nobody would do it
 */
export async function workingConfig(
  given: string | undefined,
  live: EngineNote | null,
  note: (line: string) => void,
): Promise<string | null> {
  if (live?.configFile) return configFileOf(given, live);
  const file = await configFileIfAny(given, note);
  if (file !== null || usesCluster(process.env)) return file;
  throw new CommandError(
    `no worker would do it: ${resolve(DEFAULT_CONFIG_FILE)} does not exist; name the tool servers with --config, ` +
      'or start "dtc up" on this state directory',
  );
}

/** Then the runs are there, whatever the state directory holds. */
export function usesCluster(env: NodeJS.ProcessEnv): boolean {
  return ['TEMPORAL_ADDRESS', 'TEMPORAL_PROFILE', 'TEMPORAL_CONFIG_FILE'].some((name) => Boolean(env[name]));
}
