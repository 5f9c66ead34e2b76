// Owns one process that opens a store as a user without privileges; run by sqlite.test.ts where tests run as root.
// Must never write to anything but the paths it is given.

import { openSqliteStore } from '../../receipts/open-store.js';
import { StoreError } from '../../receipts/store.js';

const NOBODY = 65_534;
const [warmUpFile = '', file = ''] = process.argv.slice(2);

// Loads the native module while its file can still be read.
await (await openSqliteStore(warmUpFile)).close();
process.setgid?.(NOBODY);
process.setuid?.(NOBODY);
try {
  await (await openSqliteStore(file)).close();
  process.send?.({ code: 'opened', message: '' });
} catch (error) {
  if (!StoreError.isInstance(error)) throw error;
  process.send?.({ code: error.code, message: error.message });
}
