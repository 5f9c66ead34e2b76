// Owns the grammar of the commands that only look. Must never hold what a command does.

import type { Command } from 'commander';
import type { DoctorOptions } from '../commands/doctor.js';
import type { FindOptions } from '../commands/find.js';
import type { ListOptions } from '../commands/list.js';
import type { ReceiptOptions } from '../commands/receipt.js';
import type { ReplayOptions } from '../commands/replay.js';
import type { StatusOptions } from '../commands/status.js';
import type { UnresolvedOptions } from '../commands/unresolved.js';
import type { WatchOptions } from '../commands/watch.js';
import { CONFIG, exitCodes, JSON_VIEW, jsonAs, type Report, STATE_DIR } from './shared-options.js';

export function addLooks(program: Command, report: Report): void {
  addLooksAtOne(program, report);
  addLooksAtMany(program, report);
  addChecks(program, report);
}

function addLooksAtOne(program: Command, report: Report): void {
  program
    .command('status')
    .description('how one operation stands; sends nothing')
    .argument('<call-node>', 'the name of the call')
    .option(...CONFIG)
    .option(...STATE_DIR)
    .option(...JSON_VIEW)
    .action(async (callNodeId: string, options: StatusOptions) => {
      const { runStatus } = await import('../commands/status.js');
      report(await runStatus(callNodeId, options));
    });
  program
    .command('watch')
    .description('follow one operation until it ends or is held')
    .argument('<call-node>', 'the name of the call')
    .option('--timeout <duration>', 'stops watching, exit code 5; cancels nothing')
    .option(...CONFIG)
    .option(...STATE_DIR)
    .option('--json', 'one operationView.v1 per line and change on standard output', false)
    .action(async (callNodeId: string, options: WatchOptions) => {
      const { runWatch } = await import('../commands/watch.js');
      report(await runWatch(callNodeId, options));
    });
  program
    .command('receipt')
    .description('the end of one operation, from the store alone')
    .argument('<call-node>', 'the name of the call')
    .option('--result', 'only the result, byte for byte as it was received', false)
    .option(...STATE_DIR)
    .option(...jsonAs('terminalReceipt.v1'))
    .action(async (callNodeId: string, options: ReceiptOptions) => {
      const { runReceipt } = await import('../commands/receipt.js');
      report(await runReceipt(callNodeId, options));
    });
}

function addLooksAtMany(program: Command, report: Report): void {
  program
    .command('list')
    .description('the open operations')
    .option('--all', 'ended ones too', false)
    .option(...STATE_DIR)
    .option(...jsonAs('operationList.v1'))
    .addHelpText('after', exitCodes('0, also where there are none.'))
    .action(async (options: ListOptions) => {
      const { runList } = await import('../commands/list.js');
      report(await runList(options));
    });
  program
    .command('unresolved')
    .description('held operations: reason, evidence, and what can be done')
    .option(...CONFIG)
    .option(...STATE_DIR)
    .option(...jsonAs('heldOperations.v1'))
    .addHelpText('after', exitCodes('0 nothing is held; 5 something is.'))
    .action(async (options: UnresolvedOptions) => {
      const { runUnresolved } = await import('../commands/unresolved.js');
      report(await runUnresolved(options));
    });
  program
    .command('find')
    .description('which call a remote task or a submission key belongs to')
    .option('--task <id>', "the server's id of the task")
    .option('--key <key>', 'the submission key that the server was given')
    .option(...STATE_DIR)
    .option(...jsonAs('foundOperations.v1'))
    .addHelpText('after', exitCodes('0 found, one call node per line; 2 there is none.'))
    .action(async (options: FindOptions) => {
      const { runFind } = await import('../commands/find.js');
      report(await runFind(options));
    });
}

function addChecks(program: Command, report: Report): void {
  program
    .command('doctor')
    .description('looks at engine, store, configuration and servers; says how to mend what is wrong')
    .option(...CONFIG)
    .option(...STATE_DIR)
    .option(...jsonAs('doctorFindings.v1'))
    .addHelpText('after', exitCodes('0 nothing is wrong; 1 something is; 2 usage.'))
    .action(async (options: DoctorOptions) => {
      const { runDoctor } = await import('../commands/doctor.js');
      report(await runDoctor(options));
    });
  program
    .command('replay')
    .description('replay recorded runs against the workflow code of this release')
    .argument('[file...]', 'histories: temporal workflow show --output json, or the download of the UI')
    .option('--workflow <id>', 'a run of the engine, by its workflow id')
    .option('--call-node <id>', 'a run of the engine, by the name of the call')
    .option('--run <id>', 'which run; default the newest')
    .option(...STATE_DIR)
    .option(...jsonAs('replayResults.v1'))
    .addHelpText('after', exitCodes('0 all replay; 1 one does not; 2 one is no history.'))
    .action(async (files: readonly string[], options: ReplayOptions) => {
      const { runReplay } = await import('../commands/replay.js');
      report(await runReplay(files, options));
    });
}
