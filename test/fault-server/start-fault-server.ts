// Owns the life of a fault server as a child process, and reading its journal.
// Must never keep a count of its own: what happened is in the journal.

import { statSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { forkServer, killChild, type Listening } from '../servers/child-server.js';
import type { JsonObject } from './json.js';
import { type JournalEntry, readJournal } from './journal.js';
import type { FaultServerOptions } from './main.js';

export type EntryOf<Kind extends JournalEntry['kind']> = JournalEntry & { readonly kind: Kind };

export interface FaultServer {
  /** Its MCP endpoint; a query chooses how it speaks (`?contract=2026-07-28&replies=json&eventIds=no&list=no&cancel=no`). */
  readonly url: string;
  readonly pid: number;
  readonly journalFile: string;
  journal(): readonly JournalEntry[];
  /** Entries of one kind about one call. */
  entries<Kind extends JournalEntry['kind']>(kind: Kind, label: string): readonly EntryOf<Kind>[];
  /** How often the body of the tool began for this call. */
  executions(label: string): number;
  /** Resolves once the journal holds such an entry; the test's own timeout ends a wait that never would. */
  until(fits: (entry: JournalEntry) => boolean): Promise<JournalEntry>;
  /** SIGKILL. Sessions and tasks are lost with it; the journal stays. */
  kill(): Promise<void>;
  /** On the same port and journal, without any memory. */
  restart(): Promise<void>;
  stop(): Promise<void>;
}

export interface StartOptions {
  /** The plan of calls that bring none. */
  readonly faults?: JsonObject;
  /** Default: a file of its own, gone with `stop`. */
  readonly journalFile?: string;
}

const PROGRAM = new URL('../../dist/test/fault-server/main.js', import.meta.url).pathname;

export async function startFaultServer(options: StartOptions = {}): Promise<FaultServer> {
  const dir = await mkdtemp(join(tmpdir(), 'dtc-fault-server-'));
  const journalFile = options.journalFile ?? join(dir, 'journal.jsonl');
  const faults = options.faults ?? {};
  let running = await launch({ port: 0, journalFile, faults });
  const { port } = running;
  let read: { readonly bytes: number; readonly entries: readonly JournalEntry[] } = { bytes: 0, entries: [] };
  // It only ever grows, and tests of many calls look often.
  const journal = (): readonly JournalEntry[] => {
    const bytes = statSync(journalFile, { throwIfNoEntry: false })?.size ?? 0;
    if (bytes !== read.bytes) read = { bytes, entries: readJournal(journalFile) };
    return read.entries;
  };
  const entries = <Kind extends JournalEntry['kind']>(kind: Kind, label: string) =>
    journal().filter(
      (entry): entry is EntryOf<Kind> => entry.kind === kind && 'label' in entry && entry.label === label,
    );
  return {
    url: `http://127.0.0.1:${port}/mcp`,
    journalFile,
    get pid() {
      return running.child.pid ?? -1;
    },
    journal,
    entries,
    executions: (label) => entries('executionBegan', label).length,
    async until(fits) {
      for (;;) {
        const found = journal().find(fits);
        if (found) return found;
        await sleep(20);
      }
    },
    kill: () => killChild(running.child),
    async restart() {
      await killChild(running.child);
      running = await launch({ port, journalFile, faults });
    },
    async stop() {
      await killChild(running.child);
      await rm(dir, { recursive: true, force: true });
    },
  };
}

function launch(options: FaultServerOptions): Promise<Listening> {
  return forkServer(PROGRAM, options, 'the fault server');
}
