// Owns `up`: engine and worker in the foreground, for other commands on the same state directory.
// Must never end by itself while both are well.

import { existsSync } from 'node:fs';
import { resolve } from 'node:path';
import { DEFAULT_CONFIG_FILE, readConfig } from '../config-file.js';
import { CommandError } from '../exit-codes.js';
import { watchInterrupts, whenAborted } from '../interrupts.js';
import { createProgress } from '../progress.js';
import { closeRuntime } from '../report.js';
import { openStandingRuntime } from '../runtime.js';

export interface UpOptions {
  readonly config?: string;
  readonly stateDir: string;
}

/** @returns 0 after SIGINT or SIGTERM. @throws CommandError, also where the worker failed */
export async function runUp(options: UpOptions): Promise<number> {
  const configFile = resolve(options.config ?? DEFAULT_CONFIG_FILE);
  if (options.config === undefined && !existsSync(configFile)) {
    throw new CommandError(`${configFile} does not exist: write it, or name another with --config`);
  }
  const progress = createProgress(process.stderr);
  const { servers } = await readConfig(configFile, progress.note);
  const interrupts = watchInterrupts();
  const runtime = await openStandingRuntime({ stateDir: options.stateDir, configFile, log: progress.note });
  try {
    const lines = [
      `engine   ${runtime.temporalAddress}`,
      ...(runtime.uiUrl === null ? [] : [`ui       ${runtime.uiUrl}`]),
      `state    ${runtime.directory.path}`,
      `servers  ${[...servers.keys()].join(', ') || 'none'}`,
      'ready; Ctrl-C ends it, and what runs remotely goes on',
    ];
    process.stdout.write(`${lines.join('\n')}\n`);
    await Promise.race([whenAborted(interrupts.signal), runtime.failed]);
    return 0;
  } catch (error) {
    const why = error instanceof Error ? error.message : 'unknown reason';
    const logs = runtime.directory.logDirectory;
    throw new CommandError(`the worker failed (${why}); see ${logs}`, undefined, { cause: error });
  } finally {
    await closeRuntime(runtime, progress);
    interrupts.release();
  }
}
