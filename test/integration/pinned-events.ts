// Owns how many events each terminal path may cost, and why each is there. A change of these numbers is a decision.

import { mkdir, writeFile } from 'node:fs/promises';
import { expect } from 'vitest';
import { workflowIdOf } from '../../operation/names.js';
import { readHistory } from '../replay/replay.js';
import type { Lab } from './lab.js';

/**
 * Every path: 1 started, 1 marker (open as a local activity), 1 completed; each workflow task is 3 events, each
 * activity 3 and the workflow task that reads it 3, each rest an upsert for people who filter by state.
 */
const EVENTS: Readonly<Record<string, { readonly events: number; readonly why: string }>> = {
  completed: {
    events: 26,
    why: 'open, submit, observe (any number of polls), accept; upserts WORKING and ACCEPTED',
  },
  failed: { events: 26, why: 'as completed: the result of a failure is fetched in the same look' },
  synchronous: { events: 19, why: 'open, submit (answered at once), accept; one upsert at the end' },
  rejected: { events: 19, why: 'open, submit (negotiates, refuses), accept; one upsert at the end' },
  'looked-up': { events: 32, why: 'as completed, and one look-up (nobody rests in SUBMISSION_UNKNOWN here)' },
  unresolved: {
    events: 26,
    why: 'as synchronous, and a rest as UNRESOLVED: a timer to look again, and the operator’s signal',
  },
  'fetched-again': { events: 32, why: 'as completed, and the fetch step after a reply without the result' },
  cancelled: {
    events: 36,
    why: 'as completed; the signal interrupts the observation, and the cancel is a step',
  },
  'cancel-beaten': {
    events: 43,
    why: 'as cancelled; the refused cancel is followed by another look, with its rest',
  },
  'wait-budget': { events: 32, why: 'as cancelled, without a signal and nothing to interrupt' },
  input: {
    events: 45,
    why: 'as completed, and a question: a second observation, the update (5), the answer step',
  },
  'never-sent': {
    events: 20,
    why: 'open, cancel (raises the generation), accept; the signal lies before the first workflow task',
  },
};

/** Set to a release that is not out yet to record its golden histories; a recorded one is never edited. */
const RECORD_AS = process.env['DTC_RECORD_GOLDENS'];

export async function pinEvents(lab: Lab, path: string, callNodeId = path): Promise<void> {
  const names = await lab.history(callNodeId);
  expect(names, `events of ${path}: ${names.join(' ')}`).toHaveLength(EVENTS[path]?.events ?? -1);
  if (RECORD_AS) await record(lab, path, callNodeId);
}

async function record(lab: Lab, path: string, callNodeId: string): Promise<void> {
  const folder = new URL(`../histories/${RECORD_AS}/`, import.meta.url);
  await mkdir(folder, { recursive: true });
  const history = await readHistory(lab.temporal, workflowIdOf(callNodeId));
  await writeFile(new URL(`${path}.json`, folder), `${JSON.stringify(history, null, 1)}\n`, { flag: 'wx' });
}
