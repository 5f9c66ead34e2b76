// Owns `up`: engine and worker in the foreground, for other commands on the same state directory.
// Must never end by itself while both are well.

import { existsSync } from 'node:fs';
import { resolve } from 'node:path';
import { DEFAULT_CONFIG_FILE, readConfig } from '../config-file.js';
import { endingOf } from '../ending.js';
import { CommandError } from '../exit-codes.js';
import { watchInterrupts, whenAborted } from '../interrupts.js';
import type { MetricsEndpoint } from '../metrics-endpoint.js';
import { createProgress, type Progress } from '../progress.js';
import { closeRuntime } from '../report.js';
import { openStandingRuntime, type Runtime } from '../runtime.js';
import { noteLine } from '../worker-log.js';

export interface UpOptions {
  readonly config?: string;
  readonly stateDir: string;
  /** `PORT` or `HOST:PORT`. */
  readonly metrics?: string;
  /** The form of standard error. */
  readonly log: 'text' | 'json';
}

/** @returns 0 after SIGINT or SIGTERM. @throws CommandError, also where the worker failed */
export async function runUp(options: UpOptions): Promise<number> {
  if (options.log === 'text') return up(options, createProgress(process.stderr));
  const progress = createProgress({ write: (text) => process.stderr.write(noteLine(text.trimEnd())) });
  try {
    return await up(options, progress);
  } catch (error) {
    const { exitCode, sentence } = endingOf(error);
    process.stderr.write(noteLine(sentence ?? 'ended', 'error'));
    return exitCode;
  }
}

async function up(options: UpOptions, progress: Progress): Promise<number> {
  const configFile = resolve(options.config ?? DEFAULT_CONFIG_FILE);
  if (options.config === undefined && !existsSync(configFile)) {
    throw new CommandError(`${configFile} does not exist: write it, or name another with --config`);
  }
  const { servers } = await readConfig(configFile, progress.note);
  // First: an address that cannot be had must not cost the start of an engine.
  const metrics = await openMetrics(options);
  try {
    return await serve({ options, configFile, serverNames: [...servers.keys()], metrics }, progress);
  } finally {
    await metrics?.close();
  }
}

async function openMetrics({ metrics }: UpOptions): Promise<MetricsEndpoint | null> {
  if (metrics === undefined) return null;
  const { openMetricsEndpoint } = await import('../metrics-endpoint.js');
  return openMetricsEndpoint(metrics);
}

interface Served {
  readonly options: UpOptions;
  readonly configFile: string;
  readonly serverNames: readonly string[];
  readonly metrics: MetricsEndpoint | null;
}

async function serve(served: Served, progress: Progress): Promise<number> {
  const { options, configFile, metrics } = served;
  const interrupts = watchInterrupts();
  const runtime = await openStandingRuntime({
    stateDir: options.stateDir,
    configFile,
    log: progress.note,
    watching: {
      onEvent: (event) => metrics?.onEvent(event),
      logLine: (line) => void (options.log === 'json' && process.stderr.write(line)),
      hasSdkMetrics: metrics !== null,
    },
  });
  try {
    metrics?.attach(runtime);
    process.stdout.write(`${linesOf(runtime, served).join('\n')}\n`);
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

function linesOf(runtime: Runtime, { serverNames, metrics }: Served): readonly string[] {
  return [
    `engine   ${runtime.temporalAddress}`,
    ...(runtime.uiUrl === null ? [] : [`ui       ${runtime.uiUrl}`]),
    ...(metrics ? [`metrics  ${metrics.url}`] : []),
    `state    ${runtime.directory.path}`,
    `servers  ${serverNames.join(', ') || 'none'}`,
    'ready; Ctrl-C ends it, and what runs remotely goes on',
  ];
}
