// Owns the flags that mean the same in every command. Must never give one of them a second meaning.

import { DEFAULT_STATE_DIRECTORY } from '../state-directory.js';

export type Report = (exitCode: number) => void;

export const STATE_DIR = [
  '--state-dir <dir>',
  'where engine, operations and logs live',
  DEFAULT_STATE_DIRECTORY,
] as const;
export const CONFIG = ['--config <file>', 'tool servers (default: tool-servers.json)'] as const;
export const JSON_VIEW = ['--json', 'one document operationView.v1 on standard output', false] as const;

/** A document of its own; its `schema` names it. */
export function jsonAs(schema: string): [string, string, boolean] {
  return ['--json', `one document ${schema} on standard output`, false];
}

/** Of a command whose exit codes are not those of an outcome. */
export function exitCodes(table: string): string {
  return `\nExit codes: ${table}`;
}
