// Owns whether a program that an independent server needs is on this machine.
// Must never let a run in CI go without one: there it is installed.

import { existsSync } from 'node:fs';
import { delimiter, join } from 'node:path';

/** False where a test has to be left out for want of it, and says so. @throws in CI */
export function isPresent(program: string, debianPackage: string): boolean {
  const folders = (process.env['PATH'] ?? '').split(delimiter);
  if (folders.some((folder) => existsSync(join(folder, program)))) return true;
  const told = `${program} is not on this machine (Debian package ${debianPackage})`;
  if (process.env['CI']) throw new Error(`${told}: CI must install it`);
  console.warn(`left out: ${told}`);
  return false;
}
