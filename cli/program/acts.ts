// Owns the grammar of the commands that do something to operations. Must never hold what a command does.

import type { Command } from 'commander';
import type { AnswerCommandOptions } from '../commands/answer.js';
import type { CancelOptions } from '../commands/cancel.js';
import type { ResolveOptions } from '../commands/resolve.js';
import type { RestoredCommandOptions } from '../commands/restored.js';
import { CONFIG, exitCodes, jsonAs, type Report, STATE_DIR } from './shared-options.js';

export function addActs(program: Command, report: Report): void {
  program
    .command('answer')
    .description("give the reply to an operation's open question")
    .argument('<call-node>', 'the name of the call')
    .argument('[json|@file|-]', 'the reply; true for a link that was opened')
    .option('--round <id>', 'which question, where several are open')
    .option('--decline', 'the tool is told that nobody answers', false)
    .option(...CONFIG)
    .option(...STATE_DIR)
    .option(...jsonAs('answerVerdict.v1'))
    .addHelpText(
      'after',
      exitCodes(
        '0 applied, or given before; 1 too late (another answer, or the question is over);\n' +
          '2 refused, or no question is open; 5 no verdict in time (giving it again is safe).',
      ),
    )
    .action(async (callNodeId: string, given: string | undefined, options: AnswerCommandOptions) => {
      const { runAnswer } = await import('../commands/answer.js');
      report(await runAnswer(callNodeId, given, options));
    });
  program
    .command('cancel')
    .description('ask for the cancellation of an operation; its end still decides')
    .argument('<call-node>', 'the name of the call')
    .option('--reason <text>', 'kept in the receipt', 'cancelled from the command line')
    .option(...CONFIG)
    .option(...STATE_DIR)
    .option(...jsonAs('cancelVerdict.v1'))
    .addHelpText('after', exitCodes('0 requested; 1 too late (the recorded end is shown); 2 unknown name.'))
    .action(async (callNodeId: string, options: CancelOptions) => {
      const { runCancel } = await import('../commands/cancel.js');
      report(await runCancel(callNodeId, options));
    });
  program
    .command('resolve')
    .description("an operator's word about a held operation; waits for what comes of it")
    .argument('<call-node>', 'the name of the call')
    .option('--found <remote-id>', 'the server did create it: go on with this task')
    .option('--never-created', 'the server never created it: ends as rejected', false)
    .option('--close', 'nobody can know: ends as unresolved, never as success', false)
    .option('--outcome <completed|failed>', 'the work ended so, as you saw at the server; needs --result')
    .option('--result <json|@file|->', 'its result, stored byte for byte: JSON, a file, or standard input')
    .requiredOption('--evidence <text>', 'what you saw, and where')
    .requiredOption('--by <name>', 'who decides')
    .option(...CONFIG)
    .option(...STATE_DIR)
    .option(...jsonAs('resolution.v1'))
    .addHelpText(
      'after',
      exitCodes(
        '0 ended, or back at work; 2 not held, or the word does not fit (nothing changed); 5 still held.',
      ),
    )
    .action(async (callNodeId: string, options: ResolveOptions) => {
      const { runResolve } = await import('../commands/resolve.js');
      report(await runResolve(callNodeId, options));
    });
  program
    .command('restored')
    .description('a backup took the place of the store: open operations compare themselves with it')
    .option(...CONFIG)
    .option(...STATE_DIR)
    .option(...jsonAs('restoredStore.v1'))
    .addHelpText(
      'after',
      '\nFirst end "dtc up" and all workers; put the file back without any -wal or -shm beside it; start them again.' +
        exitCodes('0 the store knows all that its runs have seen; 5 it does not, or a run did not answer.'),
    )
    .action(async (options: RestoredCommandOptions) => {
      const { runRestored } = await import('../commands/restored.js');
      report(await runRestored(options));
    });
}
