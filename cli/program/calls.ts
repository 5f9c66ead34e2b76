// Owns the grammar of the commands that start calls and keep them going. Must never hold what a command does.

import { type Command, Option } from 'commander';
import type { CallOptions } from '../commands/call.js';
import type { UpOptions } from '../commands/up.js';
import { CONFIG, JSON_VIEW, type Report, STATE_DIR } from './shared-options.js';

export function addCalls(program: Command, report: Report): void {
  program
    .command('demo')
    .description('a real server, a killed worker and one receipt, in about a minute')
    .option('--keep', 'stay up with engine and UI until Ctrl-C', false)
    .action(async (options: { keep: boolean }) => {
      const { runDemo } = await import('../demo/demo.js');
      report(await runDemo(options));
    });
  program
    .command('up')
    .description('engine and worker in the foreground, for other commands on the same state directory')
    .option('--metrics <[host:]port>', 'Prometheus metrics there, under /metrics (0: any free port)')
    .addOption(
      new Option('--log <form>', 'standard error for people, or one JSON object per line')
        .choices(['text', 'json'])
        .default('text'),
    )
    .option(...CONFIG)
    .option(...STATE_DIR)
    .action(async (options: UpOptions) => {
      const { runUp } = await import('../commands/up.js');
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
    .option('--detach', 'start it and come back at once; needs a running "dtc up"', false)
    .option(
      '--answer <json>',
      'for the next question: the reply, true (link opened) or false (decline)',
      collect,
      [],
    )
    .option(...CONFIG)
    .option(...STATE_DIR)
    .option(...JSON_VIEW)
    .action(async (server: string, tool: string, options: CallOptions) => {
      const { runCall } = await import('../commands/call.js');
      report(await runCall(server, tool, options));
    });
}

function collect(given: string, before: readonly string[]): readonly string[] {
  return [...before, given];
}
