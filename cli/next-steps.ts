// Owns the sentences that tell an operator what can be done about an operation. Must never say what has not been looked at.

import { shellWord } from './report.js';

export const RESTORE =
  'the store is older than its run: bring the newer store back, then "dtc restored"; nothing is sent meanwhile';

export function resolveCommand(callNodeId: string, word: string): string {
  return `dtc resolve ${shellWord(callNodeId)} ${word} --evidence TEXT --by NAME`;
}

/** Of an operation that is held, whatever the reason. */
export function endingSteps(callNodeId: string): readonly string[] {
  const outcome = '--outcome completed|failed --result @FILE';
  return [
    `its end was seen on the server: ${resolveCommand(callNodeId, outcome)}`,
    `nobody can know: ${resolveCommand(callNodeId, '--close')}`,
  ];
}
