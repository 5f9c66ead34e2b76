// Owns the doctor's look at the state directory and its store. Must never create or repair either.

import { existsSync } from 'node:fs';
import { access, constants } from 'node:fs/promises';
import { openReceiptsReader } from '../../receipts/open-store.js';
import { StoreError } from '../../receipts/store.js';
import { layoutOf } from '../state-directory.js';
import { type Finding, reasonOf, unknown, well, wrong } from './finding.js';

export async function checkDirectory(stateDir: string): Promise<Finding> {
  const { path } = layoutOf(stateDir);
  if (!existsSync(path))
    return unknown('state directory', `${path} is not there yet: the first call makes it`);
  try {
    await access(path, constants.R_OK | constants.W_OK | constants.X_OK);
    return well('state directory', path);
  } catch {
    return wrong(
      'state directory',
      `${path} cannot be written by this user`,
      'make it writable, or name another',
    );
  }
}

export async function checkStore(stateDir: string): Promise<Finding> {
  const { storeFile } = layoutOf(stateDir);
  if (!existsSync(storeFile))
    return unknown('store', `${storeFile} is not there yet: the first worker makes it`);
  try {
    const reader = await openReceiptsReader(storeFile);
    try {
      const { version, damage } = await reader.check();
      if (damage.length === 0) return well('store', `version ${version}, sound (integrity_check)`);
      return wrong('store', `${storeFile} is damaged: ${damage[0]}`, 'restore it from a backup');
    } finally {
      await reader.close();
    }
  } catch (error) {
    if (!StoreError.isInstance(error)) throw error;
    // Its sentence says what is wrong and, after the colon, what to do.
    return wrong('store', reasonOf(error), 'as it says; nothing was changed');
  }
}
