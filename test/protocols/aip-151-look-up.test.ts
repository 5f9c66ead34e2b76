// Look-ups of AIP-151 against the project's own operation server: whose operation it is, and what a list proves.

import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { JsonObject } from '../../operation/json.js';
import type { ToolServer } from '../../protocols/adapter.js';
import type { OperationList } from '../../protocols/declared-method.js';
import { type OperationServer, startOperationServer } from '../operation-server/start-operation-server.js';
import {
  aip151,
  declaredCall,
  declaredMethod,
  faultOf,
  operationServer,
  sessionOf,
  submitCall,
} from './declared.js';

let lro: OperationServer;
let server: ToolServer;
beforeAll(async () => {
  lro = await startOperationServer();
  server = operationServer(lro.url, declaredMethod());
});
afterAll(() => lro?.stop());

let calls = 0;
function call(plan: JsonObject = {}) {
  const label = `call-${++calls}`;
  return { label, call: declaredCall(server, { label, plan }) };
}

describe('a look-up', () => {
  const LIST: OperationList = {
    path: '/{parent=projects/*}/reports/{reportId}/operations',
    match: {},
    startedAt: '/metadata/startTime',
    idIsOurs: false,
  };
  const lookUp = async (list: Partial<OperationList>, plan: JsonObject, options: LookUpOptions = {}) => {
    const own = operationServer(lro.url, declaredMethod({}, { list: { ...LIST, ...list } }));
    const label = `look-up-${++calls}`;
    const made = declaredCall(own, { label, reportId: label, plan: { durationMs: 60_000, ...plan } });
    const claimedAt = options.claimedAt ?? Date.now();
    expect(await faultOf(submitCall({ ...made, ...options.call }))).toMatchObject({ kind: 'Ambiguous' });
    const find = async () =>
      aip151().findBySubmission({ ...made, ...options.call }, await sessionOf(own), claimedAt);
    return { label, find, found: await find() };
  };
  interface LookUpOptions {
    readonly claimedAt?: number;
    readonly call?: Partial<Parameters<typeof declaredCall>[2]>;
  }

  it('finds the operation that a lost submission made, and never submits', async () => {
    const { label, found } = await lookUp({}, { submit: ['lose'], name: 'odd' });
    expect(found).toMatchObject({
      kind: 'found',
      reference: { remoteId: lro.entries('started', label)[0]?.name, locator: { tool: 'report' } },
    });
    expect(lro.entries('submitReceived', label)).toHaveLength(1);
  });

  it('follows the pages of the list, with tokens as they are', async () => {
    const { label, found } = await lookUp({}, { submit: ['lose'], list: 'paged' });
    expect(found.kind).toBe('found');
    expect(lro.entries('listed', label)).toHaveLength(2);
  });

  it('cannot tell while the list does not show it: absence proves nothing', async () => {
    const { find, found } = await lookUp({}, { submit: ['lose'], list: 'lagging' });
    expect(found).toMatchObject({ kind: 'cannotTell' });
    expect(await find()).toMatchObject({ kind: 'cannotTell' });
    expect(await find()).toMatchObject({ kind: 'found' });
  });

  it('cannot tell where a part of the list is unreachable (AIP-217), even if it shows one', async () => {
    const { found } = await lookUp({}, { submit: ['lose'], list: 'unreachable' });
    expect(found).toMatchObject({
      kind: 'cannotTell',
      evidence: expect.stringContaining('not whole') as string,
    });
  });

  it('cannot tell where the server offers no list, and tries again where it is not there now', async () => {
    const { found } = await lookUp({}, { submit: ['lose'], list: '501 UNIMPLEMENTED' });
    expect(found).toEqual({ kind: 'cannotTell', evidence: 'the server offers no such list' });
    await expect(lookUp({}, { submit: ['lose'], list: '503' })).rejects.toMatchObject({ kind: 'Transient' });
  });

  it('takes no operation that began before ours was sent, unless the id is declared to be ours', async () => {
    const later = { claimedAt: Date.now() + 60_000 };
    expect((await lookUp({}, { submit: ['lose'] }, later)).found.kind).toBe('cannotTell');
    expect((await lookUp({ startedAt: '/metadata/none' }, { submit: ['lose'] })).found.kind).toBe(
      'cannotTell',
    );
    const declared = { startedAt: null, idIsOurs: true };
    expect((await lookUp(declared, { submit: ['lose'] }, later)).found.kind).toBe('found');
    expect((await lookUp({ startedAt: null }, { submit: ['lose'] })).found.kind).toBe('cannotTell');
  });

  it('takes none that does not hold what ours must', async () => {
    const fits = await lookUp({ match: { '/metadata/label': '{label}' } }, { submit: ['lose'] });
    expect(fits.found.kind).toBe('found');
    const misses = await lookUp({ match: { '/metadata/label': 'x{label}' } }, { submit: ['lose'] });
    expect(misses.found.kind).toBe('cannotTell');
  });

  it("of an id made of the call's own key takes what bears it, whenever it began", async () => {
    const call = {
      submissionPolicy: 'key-argument',
      keyName: 'reportId',
      submissionKey: `dtc-${++calls}`,
    } as const;
    const { label, find, found } = await lookUp(
      { startedAt: null },
      { submit: ['lose'] },
      { claimedAt: Date.now() + 60_000, call },
    );
    expect(found.kind).toBe('found');
    expect((await find()).kind).toBe('found');
    expect(lro.entries('started', label)).toMatchObject([
      { resource: `projects/p/reports/${call.submissionKey}` },
    ]);
  });

  it("is what ALREADY_EXISTS comes to where the id can be nobody else's: never a second submission", async () => {
    const own = operationServer(lro.url, declaredMethod({}, { list: LIST }));
    const keyed = {
      submissionPolicy: 'key-argument',
      keyName: 'reportId',
      submissionKey: `dtc-${++calls}`,
    } as const;
    const label = `exists-${calls}`;
    const one = declaredCall(own, { label, plan: { durationMs: 60_000, submit: ['lose'] } }, keyed);
    expect(await faultOf(submitCall(one))).toMatchObject({ kind: 'Ambiguous' });
    expect(await submitCall(one)).toMatchObject({
      kind: 'referenced',
      reference: { remoteId: lro.entries('started', label)[0]?.name },
    });
    expect(lro.executions(label)).toBe(1);
    // Somebody else's choice of an id: ambiguous, and left to the look-up that knows the time.
    const foreign = declaredCall(own, { label: 'foreign', reportId: keyed.submissionKey });
    expect(await faultOf(submitCall(foreign))).toMatchObject({ kind: 'Ambiguous', wireCode: 409 });
    expect(lro.executions('foreign')).toBe(0);
  });

  it('without a list to read cannot tell', async () => {
    const one = call();
    const found = await aip151().findBySubmission(one.call, await sessionOf(server), Date.now());
    expect(found).toMatchObject({ kind: 'cannotTell' });
  });
});
