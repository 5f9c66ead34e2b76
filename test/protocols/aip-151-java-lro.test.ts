// The AIP-151 adapter against java-lro, a server whose operations nobody here wrote: every method on the real wire.

import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import type { JsonObject } from '../../operation/json.js';
import type { RemoteReference } from '../../operation/row.js';
import type { Observation, Submission, ToolServer } from '../../protocols/adapter.js';
import { BACKUP, type JavaLro, PARENT, startJavaLro } from '../servers/start-java-lro.js';
import { aip151, declaredCall, declaredMethod, operationServer, sessionOf, submitCall } from './declared.js';

const DURATION_MS = 1_500;
const METADATA = 'type.googleapis.com/google.spanner.admin.database.v1.CreateBackupMetadata';

let lro: JavaLro;
let server: ToolServer;
beforeAll(async () => {
  lro = await startJavaLro(DURATION_MS);
  const method = declaredMethod(
    { path: '/{parent=projects/*/instances/*}/backups?backupId={backupId}', body: 'backup' },
    {
      list: {
        path: '/{parent=projects/*/instances/*}/backups/{backupId}/operations',
        match: { '/metadata/@type': METADATA, '/metadata/database': '{backup.database}' },
        startedAt: '/metadata/progress/startTime',
        idIsOurs: false,
      },
    },
  );
  server = operationServer(lro.url, method);
}, 300_000);
afterAll(() => lro?.stop());
beforeEach(() => lro.loseResponse(null));

function callOf(backupId: string, more: JsonObject = {}) {
  return declaredCall(server, { parent: PARENT, backupId, backup: BACKUP, ...more });
}

async function started(submission: Promise<Submission>): Promise<RemoteReference> {
  const made = await submission;
  if (made.kind !== 'referenced') throw new Error(`no reference: ${made.kind}`);
  return JSON.parse(JSON.stringify(made.reference)) as RemoteReference;
}

async function ended(reference: RemoteReference): Promise<Observation> {
  for (;;) {
    const seen = await aip151().observe(server, reference);
    if (seen.meaning !== 'working') return seen;
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
}

async function madeFor(backupId: string): Promise<number> {
  return (await lro.backupOperations()).filter(({ name }) => name.includes(`/backups/${backupId}/`)).length;
}

describe('an operation', () => {
  it('runs although its response is there, and ends with the bytes of it', async () => {
    const reference = await started(submitCall(callOf('b-done')));
    expect(reference.remoteId).toMatch(/^projects\/p\/instances\/i\/backups\/b-done\/operations\//);
    expect(await aip151().observe(server, reference)).toMatchObject({ meaning: 'working' });
    const seen = await ended(reference);
    expect(seen.meaning).toBe('completed');
    if (seen.inline?.kind !== 'result') throw new Error('no result');
    const text = Buffer.from(seen.inline.result.bytes).toString('utf8');
    expect(JSON.parse(text)).toMatchObject({ name: `${PARENT}/backups/b-done`, state: 'READY' });
    expect(await madeFor('b-done')).toBe(1);
    // Of what is over: acknowledged, and nothing changes.
    expect(await aip151().cancel(server, reference, async () => {})).toBe('acknowledged');
    expect((await aip151().observe(server, reference)).meaning).toBe('completed');
  });

  it('that is cancelled ends with error code 1', async () => {
    const reference = await started(submitCall(callOf('b-cancel')));
    expect(await aip151().cancel(server, reference, async () => {})).toBe('acknowledged');
    expect(await ended(reference)).toMatchObject({ meaning: 'cancelled', remoteStatus: 'done: CANCELLED' });
  });

  it('nobody knows is not found', async () => {
    const stranger = { remoteId: `${PARENT}/backups/none/operations/9`, locator: await sessionOf(server) };
    await expect(aip151().observe(server, stranger)).rejects.toMatchObject({
      kind: 'NotFound',
      wireCode: 404,
    });
    await expect(aip151().cancel(server, stranger, async () => {})).rejects.toMatchObject({
      kind: 'NotFound',
    });
    expect(await aip151().fetchResult(server, stranger)).toMatchObject({ kind: 'lost' });
  });

  it('is deleted after its receipt where that is configured, and not before it ended', async () => {
    const reference = await started(submitCall(callOf('b-delete')));
    const locator = { ...reference.locator, deleteAfterReceipt: '/{name=**}' };
    await aip151().release(server, locator, reference.remoteId);
    // FAILED_PRECONDITION from this server while it runs.
    expect((await ended(reference)).meaning).toBe('completed');
    await aip151().release(server, locator, reference.remoteId);
    await expect(aip151().observe(server, reference)).rejects.toMatchObject({ kind: 'NotFound' });
  });
});

describe('a submission', () => {
  it.each(['UNAVAILABLE', 'DEADLINE_EXCEEDED', 'INTERNAL', 'UNKNOWN'])(
    'that fails with %s before anything started is ambiguous all the same',
    async (status) => {
      await lro.failNext(status);
      await expect(submitCall(callOf(`b-${status}`))).rejects.toMatchObject({ kind: 'Ambiguous' });
      expect(await madeFor(`b-${status}`)).toBe(0);
    },
  );

  it.each([
    ['ABORTED', 409],
    ['RESOURCE_EXHAUSTED', 429],
    ['PERMISSION_DENIED', 403],
    ['UNAUTHENTICATED', 401],
    ['NOT_FOUND', 404],
  ])('that is answered by %s was refused', async (status, wireCode) => {
    await lro.failNext(status);
    await expect(submitCall(callOf(`b-${status}`))).rejects.toMatchObject({
      kind: 'RefusedByServer',
      wireCode,
    });
    expect(await madeFor(`b-${status}`)).toBe(0);
  });

  it('whose answer is lost is found in the operations of its backup', async () => {
    await lro.loseResponse('UNAVAILABLE');
    const claimedAt = Date.now();
    await expect(submitCall(callOf('b-lost'))).rejects.toMatchObject({ kind: 'Ambiguous' });
    const found = await aip151().findBySubmission(callOf('b-lost'), await sessionOf(server), claimedAt);
    if (found.kind !== 'found') throw new Error(found.kind);
    expect(found.reference.remoteId).toMatch(/\/backups\/b-lost\/operations\//);
    expect((await ended(found.reference)).meaning).toBe('completed');
    expect(await madeFor('b-lost')).toBe(1);
  });

  it('of a backup that is there already is ambiguous: ALREADY_EXISTS says it is not new, not whose it is', async () => {
    const claimedAt = Date.now();
    const reference = await started(submitCall(callOf('b-there')));
    await expect(submitCall(callOf('b-there'))).rejects.toMatchObject({ kind: 'Ambiguous', wireCode: 409 });
    const session = await sessionOf(server);
    expect(await aip151().findBySubmission(callOf('b-there'), session, claimedAt)).toMatchObject({
      kind: 'found',
      reference: { remoteId: reference.remoteId },
    });
    // Begun before we sent anything, or of another database: somebody else's.
    const later = await aip151().findBySubmission(callOf('b-there'), session, Date.now() + 30_000);
    expect(later.kind).toBe('cannotTell');
    const other = callOf('b-there', { backup: { ...BACKUP, database: `${PARENT}/databases/d2` } });
    expect((await aip151().findBySubmission(other, session, claimedAt)).kind).toBe('cannotTell');
    expect(await madeFor('b-there')).toBe(1);
  });
});
