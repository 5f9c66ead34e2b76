// Owns the fault server as a process: started by tests, killed by tests, gone when its parent is.
// Must never listen beyond the loopback address.

import type { JsonObject } from './json.js';
import { listen } from './http.js';
import { Journal } from './journal.js';
import { readPlan } from './plan.js';

/** Handed over as JSON in the first argument. */
export interface FaultServerOptions {
  /** 0: any free port. */
  readonly port: number;
  readonly journalFile: string;
  /** The plan of calls that bring none. */
  readonly faults: JsonObject;
}

const options = JSON.parse(process.argv[2] ?? 'null') as FaultServerOptions | null;
if (!options) throw new Error('the fault server is started by tests, with its options as JSON');
readPlan(options.faults);
const journal = new Journal(options.journalFile);
journal.write({ kind: 'serverStarted', pid: process.pid });
const port = await listen({ journal, defaultPlan: options.faults }, options.port);
process.on('disconnect', () => process.exit());
process.send?.({ kind: 'listening', port });
