// Owns the grammar of the commands about the store as a whole: what is owed, and whether it holds what it promises.
// Must never hold what a command does.

import type { Command } from 'commander';
import type { AuditOptions } from '../commands/audit.js';
import type { EffectsOptions, SettleOptions } from '../commands/effects.js';
import { exitCodes, jsonAs, type Report, STATE_DIR } from './shared-options.js';

export function addStoreWork(program: Command, report: Report): void {
  const effects = program
    .command('effects')
    .description('operations that may have left effects no receipt accounts for')
    .option('--all', 'settled ones too', false)
    .option(...STATE_DIR)
    .option(...jsonAs('effectReconciliations.v1'))
    .addHelpText('after', exitCodes('0 nothing is owed; 5 something is.'))
    .action(async (options: EffectsOptions) => {
      const { runEffects } = await import('../commands/effects.js');
      report(await runEffects(options));
    });
  effects
    .command('settle')
    .description('a person’s word that the effects of one operation were looked after')
    .argument('<call-node>', 'the name of the call')
    .requiredOption('--note <text>', 'what you found, and what was done')
    .requiredOption('--by <name>', 'who says so')
    .option(...STATE_DIR)
    .option(...jsonAs('effectSettlement.v1'))
    .addHelpText(
      'after',
      exitCodes(
        '0 settled, or settled before by the same word; 1 by another word; 2 unknown, or nothing owed.',
      ),
    )
    .action(async (callNodeId: string, options: SettleOptions) => {
      const { runSettle } = await import('../commands/effects.js');
      report(await runSettle(callNodeId, options));
    });
  program
    .command('audit')
    .description('proves for the whole store: one receipt per ended call, and that every digest recomputes')
    .option(...STATE_DIR)
    .option(...jsonAs('storeAudit.v1'))
    .addHelpText('after', exitCodes('0 nothing is wrong; 1 something is; 2 there is no store.'))
    .action(async (options: AuditOptions) => {
      const { runAudit } = await import('../commands/audit.js');
      report(await runAudit(options));
    });
}
