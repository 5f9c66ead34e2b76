// Owns the operation server as a process: an AIP-151 server of our own, for what no independent one offers.
// Must never listen beyond the loopback address, nor outlive its parent.

import { listen } from './http.js';
import { Journal } from './journal.js';

export interface OperationServerOptions {
  /** 0: any free port. */
  readonly port: number;
  readonly journalFile: string;
}

const options = JSON.parse(process.argv[2] ?? 'null') as OperationServerOptions | null;
if (!options) throw new Error('the operation server is started by tests, with its options as JSON');
const journal = new Journal(options.journalFile);
journal.write({ kind: 'serverStarted' });
const port = await listen(journal, options.port);
process.on('disconnect', () => process.exit());
process.send?.({ kind: 'listening', port });
