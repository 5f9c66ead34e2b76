// Owns the life of an operation server as a child process, and reading its journal.
// Must never keep a count of its own: what happened is in the journal.

import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { forkServer, killChild, type Listening } from '../servers/child-server.js';
import { type JournalEntry, readJournal } from './journal.js';
import type { OperationServerOptions } from './main.js';

type EntryOf<Kind extends JournalEntry['kind']> = Extract<JournalEntry, { kind: Kind }>;

export interface OperationServer {
  /** Up to and with the version: `http://127.0.0.1:PORT/v1`. */
  readonly url: string;
  entries<Kind extends JournalEntry['kind']>(kind: Kind, label?: string): readonly EntryOf<Kind>[];
  /** How often work was started for this call. */
  executions(label: string): number;
  until(fits: (entry: JournalEntry) => boolean): Promise<JournalEntry>;
  /** SIGKILL. Operations survive it in the journal. */
  kill(): Promise<void>;
  /** On the same port and journal. */
  restart(): Promise<void>;
  stop(): Promise<void>;
}

const PROGRAM = new URL('../../dist/test/operation-server/main.js', import.meta.url).pathname;

export async function startOperationServer(): Promise<OperationServer> {
  const dir = await mkdtemp(join(tmpdir(), 'dtc-operation-server-'));
  const journalFile = join(dir, 'journal.jsonl');
  let running = await launch({ port: 0, journalFile });
  const { port } = running;
  const entries = <Kind extends JournalEntry['kind']>(kind: Kind, label?: string) =>
    readJournal(journalFile).filter(
      (entry): entry is EntryOf<Kind> =>
        entry.kind === kind && (label === undefined || ('label' in entry && entry.label === label)),
    );
  return {
    url: `http://127.0.0.1:${port}/v1`,
    entries,
    executions: (label) => entries('started', label).length,
    async until(fits) {
      for (;;) {
        const found = readJournal(journalFile).find(fits);
        if (found) return found;
        await sleep(20);
      }
    },
    kill: () => killChild(running.child),
    async restart() {
      await killChild(running.child);
      running = await launch({ port, journalFile });
    },
    async stop() {
      await killChild(running.child);
      await rm(dir, { recursive: true, force: true });
    },
  };
}

function launch(options: OperationServerOptions): Promise<Listening> {
  return forkServer(PROGRAM, options, 'the operation server');
}
