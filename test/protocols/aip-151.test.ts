// Looks, cancels and deletes of AIP-151 against the project's own operation server: what no independent server offers.

import { createHash } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { JsonObject } from '../../operation/json.js';
import type { RemoteReference } from '../../operation/row.js';
import type { Observation, ToolServer } from '../../protocols/adapter.js';
import { type OperationServer, startOperationServer } from '../operation-server/start-operation-server.js';
import {
  aip151,
  declaredCall,
  declaredMethod,
  faultOf,
  operationServer,
  referenceOf,
  sessionOf,
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

async function observeUntil(
  reference: RemoteReference,
  fits: (seen: Observation) => boolean,
): Promise<Observation> {
  for (;;) {
    const seen = await aip151().observe(server, reference);
    if (fits(seen)) return seen;
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
}
const isOver = ({ meaning }: Observation): boolean => meaning !== 'working';

function inlineText(seen: Observation): string {
  if (seen.inline?.kind !== 'result') throw new Error('no inline result');
  return Buffer.from(seen.inline.result.bytes).toString('utf8');
}

describe('a look', () => {
  it('goes by done only: a running operation may carry its response already', async () => {
    const reference = await referenceOf(call({ durationMs: 60_000 }).call);
    const seen = await aip151().observe(server, reference);
    expect(seen).toMatchObject({ meaning: 'working', remoteStatus: 'running' });
    expect(seen.inline).toBeUndefined();
    expect(await aip151().fetchResult(server, reference)).toEqual({ kind: 'notYet' });
  });

  it('has the exact bytes of the response, digest and all', async () => {
    const response = '{ "big":12345678901234567890,\n "e": 1.0e2 , "u":"\\u00e9" }';
    const reference = await referenceOf(call({ durationMs: 150, response }).call);
    const seen = await observeUntil(reference, isOver);
    expect(seen).toMatchObject({ meaning: 'completed', remoteStatus: 'done' });
    expect(inlineText(seen)).toBe(response);
    const fetched = await aip151().fetchResult(server, reference);
    if (fetched.kind !== 'result') throw new Error(fetched.kind);
    expect(createHash('sha256').update(fetched.result.bytes).digest('hex')).toBe(
      createHash('sha256').update(response).digest('hex'),
    );
  });

  it("has the exact bytes of an error, which is the work's own failure", async () => {
    const seen = await observeUntil(await referenceOf(call({ durationMs: 150, end: 'error' }).call), isOver);
    expect(seen).toMatchObject({
      meaning: 'failed',
      remoteStatus: 'done: FAILED_PRECONDITION',
      statusMessage: 'the paper ran out',
      inline: { result: { isToolError: true, isProtocolError: false } },
    });
    expect(inlineText(seen)).toBe('{"code":9,  "message":"the paper ran out"}');
  });

  it('takes an error of code 1 for a cancelled operation, asked for or not', async () => {
    const seen = await observeUntil(
      await referenceOf(call({ durationMs: 150, end: 'cancelled' }).call),
      isOver,
    );
    expect(seen).toMatchObject({ meaning: 'cancelled', remoteStatus: 'done: CANCELLED' });
    expect(seen.inline).toBeUndefined();
  });

  it('takes done with neither member for completed, with an empty typed result', async () => {
    const seen = await observeUntil(
      await referenceOf(call({ durationMs: 150, end: 'nothing' }).call),
      isOver,
    );
    expect(seen).toMatchObject({
      meaning: 'completed',
      inline: {
        kind: 'result',
        result: { mediaType: 'application/x-protobuf; messageType="google.protobuf.Empty"' },
      },
    });
    expect(inlineText(seen)).toBe('');
  });

  it.each([
    ['both', 'done with both response and error'],
    ['codeless', 'done with an error that has no code'],
  ])('breaks the contract where done says %s', async (end, why) => {
    const reference = await referenceOf(call({ durationMs: 150, end }).call);
    expect(await faultOf(observeUntil(reference, isOver))).toMatchObject({
      kind: 'ProtocolViolation',
      message: `get: ${why}`,
    });
  });

  it.each([
    ['404', 'NotFound'],
    ['404 NOT_FOUND', 'NotFound'],
    ['410', 'NotFound'],
    // May hide absence (AIP-211): read again, and held in sight of people; never failed.
    ['403 PERMISSION_DENIED', 'NotFound'],
    ['403 PERMISSION_DENIED retry-after 1', 'Transient'],
    ['401 UNAUTHENTICATED', 'Transient'],
    ['408', 'Transient'],
    ['409 ABORTED', 'Transient'],
    ['429 RESOURCE_EXHAUSTED', 'Transient'],
    ['500', 'Transient'],
    ['503 UNAVAILABLE', 'Transient'],
    ['504 DEADLINE_EXCEEDED', 'Transient'],
    ['cut', 'Transient'],
    ['501 UNIMPLEMENTED', 'ProtocolViolation'],
    ['400 INVALID_ARGUMENT', 'ProtocolViolation'],
    ['307', 'ProtocolViolation'],
    ['other', 'ProtocolViolation'],
    ['page', 'ProtocolViolation'],
    ['empty', 'ProtocolViolation'],
  ])('answered by %s is %s, and the next one sees the work again', async (word, kind) => {
    const reference = await referenceOf(call({ durationMs: 60_000, get: [word] }).call);
    expect(await faultOf(aip151().observe(server, reference))).toMatchObject({ kind });
    expect(await aip151().observe(server, reference)).toMatchObject({ meaning: 'working' });
    expect(lro.entries('followed')).toEqual([]);
  });

  it.each([
    ['503 UNAVAILABLE retry-after 7', 7_000],
    ['429 RESOURCE_EXHAUSTED retry-info 1.25s', 1_250],
    ['503 UNAVAILABLE retry-info nonsense', null],
  ])('answered by %s waits as long as it was asked to', async (word, retryAfterMs) => {
    const reference = await referenceOf(call({ durationMs: 60_000, get: [word] }).call);
    expect(await faultOf(aip151().observe(server, reference))).toMatchObject({ retryAfterMs });
  });

  it('waits for Retry-After of a good reply too, where that is longer than the configured interval', async () => {
    const plan = { durationMs: 60_000, get: ['ok retry-after 9', 'ok retry-after 1'] };
    const reference = await referenceOf(call(plan).call);
    expect((await aip151().observe(server, reference)).intervalMs).toBe(9_000);
    expect((await aip151().observe(server, reference)).intervalMs).toBe(2_000);
  });

  it('at an operation that a restart did not forget goes on', async () => {
    const reference = await referenceOf(call({ durationMs: 60_000 }).call);
    await lro.restart();
    expect(await aip151().observe(server, reference)).toMatchObject({ meaning: 'working' });
  });

  it('for a name that no path can hold never leaves', async () => {
    const reference = { remoteId: 'projects/p/operations/../../secrets', locator: await sessionOf(server) };
    expect(await faultOf(aip151().observe(server, reference))).toMatchObject({ kind: 'ProtocolViolation' });
    expect(await faultOf(aip151().cancel(server, reference, async () => {}))).toMatchObject({
      kind: 'ProtocolViolation',
    });
  });

  it('after several misses goes by the configuration as it is now: a path may have been mended', async () => {
    const wrong = operationServer(lro.url, declaredMethod({}, { get: '/typo/{name=**}' }));
    const reference = await referenceOf({ ...call({ durationMs: 60_000 }).call, server: wrong });
    expect(await faultOf(aip151().observe(wrong, reference))).toMatchObject({ kind: 'NotFound' });
    // Running operations keep what they were submitted under.
    expect(await faultOf(aip151().observe(server, reference))).toMatchObject({ kind: 'NotFound' });
    const renewed = await aip151().renewSession(server, reference);
    expect(renewed.remoteId).toBe(reference.remoteId);
    expect(await aip151().observe(server, renewed)).toMatchObject({ meaning: 'working' });
    expect(await aip151().renewSession({ ...server, methods: {} }, reference)).toEqual(reference);
  });
});

describe('a cancel', () => {
  const running = (cancel: string): Promise<RemoteReference> =>
    referenceOf(call({ durationMs: 60_000, cancel }).call);
  const cancelled = async (word: string) => aip151().cancel(server, await running(word), async () => {});

  it('is only acknowledged, whether or not it is heeded', async () => {
    expect(await cancelled('works')).toBe('acknowledged');
    expect(await cancelled('ignored')).toBe('acknowledged');
  });

  it('is unsupported where the method is not implemented or not there', async () => {
    expect(await cancelled('501 UNIMPLEMENTED')).toBe('unsupported');
    expect(await cancelled('absent')).toBe('unsupported');
  });

  it('is not sent where the configuration offers none', async () => {
    const one = call({ durationMs: 60_000 });
    const mute = operationServer(lro.url, declaredMethod({}, { cancel: null }));
    const reference = await referenceOf({ ...one.call, server: mute });
    expect(await aip151().cancel(mute, reference, async () => {})).toBe('unsupported');
    expect(lro.entries('cancelReceived', one.label)).toEqual([]);
  });

  it('is refused by a server that knows the operation and says no', async () => {
    expect(await cancelled('400 FAILED_PRECONDITION')).toBe('refused');
    expect(await cancelled('403')).toBe('refused');
  });

  it('of an unknown operation is not found', async () => {
    const stranger = { remoteId: 'projects/p/operations/none', locator: await sessionOf(server) };
    expect(await faultOf(aip151().cancel(server, stranger, async () => {}))).toMatchObject({
      kind: 'NotFound',
    });
    expect(await aip151().fetchResult(server, stranger)).toMatchObject({ kind: 'lost' });
  });
});

describe('what is done after the receipt', () => {
  it('deletes the operation only where that is configured, and only one that ended', async () => {
    const one = call({ durationMs: 150 });
    const reference = await referenceOf(one.call);
    await aip151().release(server, reference.locator, reference.remoteId);
    expect(lro.entries('deleted', one.label)).toEqual([]);
    const tidy = operationServer(lro.url, declaredMethod({}, { deleteAfterReceipt: '/{name=**}' }));
    const locator = await sessionOf(tidy);
    await aip151().release(tidy, locator);
    expect(lro.entries('deleted', one.label)).toEqual([]);
    await aip151().release(tidy, locator, reference.remoteId);
    expect(lro.entries('deleted', one.label)).toMatchObject([{ name: reference.remoteId }]);
    // Of what is gone, or nowhere: nothing is said.
    await aip151().release(tidy, locator, reference.remoteId);
    await aip151().release({ ...tidy, url: 'http://127.0.0.1:9/v1' }, locator, 'x');
  });
});
