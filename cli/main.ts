#!/usr/bin/env node
// Owns the command line's grammar, and the end of the process.
// Must never show a stack trace for what a person can mend.

import { readFileSync } from 'node:fs';
import { Command } from 'commander';
import type { CallOptions } from './commands/call.js';
import type { StatusOptions } from './commands/status.js';
import type { UpOptions } from './commands/up.js';
import { endingOf } from './ending.js';
import { EXIT_CODES } from './exit-codes.js';
import { printable } from './printable.js';
import { DEFAULT_STATE_DIRECTORY } from './state-directory.js';

const EXIT_HELP = `
Exit codes: 0 completed, 1 failed, 2 usage or configuration (nothing was started), 3 cancelled, 4 rejected,
5 not ended, held or closed as unresolved, 130 interrupted locally.`;

type Report = (exitCode: number) => void;

/** Commands load their code when they are run: `--help` needs none of it. */
function buildProgram(report: Report): Command {
  const program = new Command('durable-tool-calls')
    .alias('dtc')
    .description('Long MCP tool calls that end exactly once, with one receipt each.')
    .version(packageVersion())
    .addHelpText('after', EXIT_HELP)
    .showSuggestionAfterError()
    .exitOverride();
  const stateDir = [
    '--state-dir <dir>',
    'where engine, operations and logs live',
    DEFAULT_STATE_DIRECTORY,
  ] as const;
  const config = ['--config <file>', 'tool servers (default: tool-servers.json)'] as const;
  const json = ['--json', 'one document operationView.v1 on standard output', false] as const;

  program
    .command('demo')
    .description('a real server, a killed worker and one receipt, in about a minute')
    .option('--keep', 'stay up with engine and UI until Ctrl-C', false)
    .action(async (options: { keep: boolean }) => {
      const { runDemo } = await import('./demo/demo.js');
      report(await runDemo(options));
    });
  program
    .command('up')
    .description('engine and worker in the foreground, for other commands on the same state directory')
    .option(...config)
    .option(...stateDir)
    .action(async (options: UpOptions) => {
      const { runUp } = await import('./commands/up.js');
      report(await runUp(options));
    });
  program
    .command('call')
    .description('call a tool, or come back to a call by its --call-node, and wait for the receipt')
    .argument('<server>', 'a server of the configuration')
    .argument('<tool>', 'one of its tools')
    .option('--args <json|@file|->', 'the arguments: JSON, a file, or standard input', '{}')
    .option('--call-node <id>', 'name of this call; the same name is the same operation, for ever')
    .option('--wait-budget <duration>', 'its end cancels remotely (default: the configured one, else 24h)')
    .option('--timeout <duration>', 'stops waiting, exit code 5; cancels nothing')
    .option(
      '--answer <json>',
      'for the next question: the reply, true (link opened) or false (decline)',
      collect,
      [],
    )
    .option(...config)
    .option(...stateDir)
    .option(...json)
    .action(async (server: string, tool: string, options: CallOptions) => {
      const { runCall } = await import('./commands/call.js');
      report(await runCall(server, tool, options));
    });
  program
    .command('status')
    .description('how one operation stands; sends nothing')
    .argument('<call-node>', 'the name of the call')
    .option(...config)
    .option(...stateDir)
    .option(...json)
    .action(async (callNodeId: string, options: StatusOptions) => {
      const { runStatus } = await import('./commands/status.js');
      report(await runStatus(callNodeId, options));
    });
  return program;
}

function collect(given: string, before: readonly string[]): readonly string[] {
  return [...before, given];
}

function packageVersion(): string {
  // Compiled, this file lies two folders under the package; in a source run one.
  for (const up of ['../../package.json', '../package.json']) {
    try {
      const { name, version } = JSON.parse(readFileSync(new URL(up, import.meta.url), 'utf8')) as Record<
        string,
        string
      >;
      if (name === 'durable-tool-calls' && version !== undefined) return version;
    } catch {
      // Not there: the other one.
    }
  }
  return 'unknown';
}

async function main(): Promise<void> {
  // The reader of a pipe may leave, a terminal may be closed: no reason to crash.
  for (const stream of [process.stdout, process.stderr]) stream.on('error', () => {});
  let exitCode: number = EXIT_CODES.completed;
  try {
    await buildProgram((reported) => (exitCode = reported)).parseAsync();
  } catch (error) {
    const ending = endingOf(error);
    exitCode = ending.exitCode;
    if (ending.sentence !== null) process.stderr.write(`${printable(ending.sentence)}\n`);
    if (process.env['DTC_DEBUG'] === '1') console.error(error);
  }
  // What was written may still be on its way into a pipe; and a connection that cannot be closed must not hold us.
  await Promise.all([process.stdout, process.stderr].map((stream) => flushed(stream)));
  process.exit(exitCode);
}

function flushed(stream: NodeJS.WriteStream): Promise<void> {
  return new Promise((resolve) => {
    stream.write('', () => resolve());
  });
}

await main();
