// Owns `doctor`: everything a call needs, looked at one by one, with the way to mend what is wrong.
// Must never mend by itself, nor make a state directory or an engine's database where none is.

import { existsSync } from 'node:fs';
import { resolve } from 'node:path';
import { DEFAULT_CONFIG_FILE, usesCluster } from '../config-file.js';
import { checkEngine } from '../doctor/check-engine.js';
import { checkDirectory, checkStore } from '../doctor/check-place.js';
import { checkConfig, checkServers } from '../doctor/check-servers.js';
import { type Finding, reasonOf, unknown, well, wrong } from '../doctor/finding.js';
import { EngineError } from '../engine/engine-error.js';
import { findTemporal, temporalCacheDir } from '../engine/temporal-binary.js';
import { CommandError, EXIT_CODES } from '../exit-codes.js';
import { type Place, withRuntime } from '../open-place.js';
import { columns, oneLine } from '../printable.js';
import { writeJson, writeLines } from '../report.js';
import { layoutOf, readLiveEngine } from '../state-directory.js';
import type { ToolServersConfig } from '../../worker/tool-servers.js';

export interface DoctorOptions extends Place {
  readonly json: boolean;
}

/** @returns 0 where all is well or not there yet, 1 where something is wrong */
export async function runDoctor(options: DoctorOptions): Promise<number> {
  const defaultFile = resolve(DEFAULT_CONFIG_FILE);
  const live = await readLiveEngine(layoutOf(options.stateDir));
  const named = options.config === undefined ? live?.configFile : resolve(options.config);
  const file = named ?? (existsSync(defaultFile) ? defaultFile : null);
  const { config, findings } = await checkConfig(file, defaultFile);
  const all: Finding[] = [
    ...findings,
    ...(config ? await checkServers(config) : []),
    await checkDirectory(options.stateDir),
    await checkStore(options.stateDir),
    ...(await engineFindings(options, config)),
  ];
  const isWrong = all.some(({ kind }) => kind === 'wrong');
  if (options.json) writeJson({ schema: 'doctorFindings.v1', isWell: !isWrong, findings: all });
  else writeLines(linesOf(all));
  return isWrong ? EXIT_CODES.wrong : EXIT_CODES.completed;
}

async function engineFindings(
  options: DoctorOptions,
  config: ToolServersConfig | null,
): Promise<readonly Finding[]> {
  const { temporalDbFile, engineFile } = layoutOf(options.stateDir);
  const hasRun = existsSync(temporalDbFile) || existsSync(engineFile) || usesCluster(process.env);
  try {
    if (!hasRun) return [await engineToBe()];
    return await withRuntime({ ...options, configFile: null }, (runtime) => checkEngine(runtime, config));
  } catch (error) {
    if (!CommandError.isInstance(error) && !EngineError.isInstance(error)) throw error;
    return [wrong('Temporal server', reasonOf(error), 'as it says; "dtc up" shows more')];
  }
}

/** No engine has run here: only whether one could. */
async function engineToBe(): Promise<Finding> {
  const { env } = process;
  const found = await findTemporal({
    env,
    cacheDir: temporalCacheDir(env),
    download: false,
    log: () => {},
  }).catch((error: unknown) => {
    if (!EngineError.isInstance(error)) throw error;
    return error;
  });
  if (EngineError.isInstance(found)) {
    return unknown('Temporal server', `none here yet; the first call fetches one (${found.message})`);
  }
  const what = found.kind === 'binary' ? `${found.path} (${found.version})` : found.address;
  return well('Temporal server', `none runs here yet; ${what} would be used`);
}

const MARKS = { well: 'ok', wrong: 'WRONG', unknown: '?' } as const;

function linesOf(findings: readonly Finding[]): readonly string[] {
  const rows = columns(findings.map(({ kind, what, says }) => [MARKS[kind], what, oneLine(says)]));
  return rows.flatMap((row, index) => {
    const mend = findings[index]?.mend;
    return mend ? [row, `       mend: ${oneLine(mend)}`] : [row];
  });
}
