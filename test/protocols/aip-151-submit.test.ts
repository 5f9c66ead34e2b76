// Submissions of AIP-151 against the project's own operation server: what each reply proves, and the request id.

import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { JsonObject } from '../../operation/json.js';
import type { ToolServer } from '../../protocols/adapter.js';
import { type OperationServer, startOperationServer } from '../operation-server/start-operation-server.js';
import {
  aip151,
  declaredCall,
  declaredMethod,
  faultOf,
  operationServer,
  referenceOf,
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

describe('a submission', () => {
  it('is referenced by its name, byte for byte, whatever letters it has', async () => {
    const one = call({ name: 'odd', durationMs: 60_000 });
    const reference = await referenceOf(one.call);
    const [started] = lro.entries('started', one.label);
    expect(reference.remoteId).toBe(started?.name);
    expect(reference.remoteId).toContain('/a+b=c==/x:y%2Fz é~%');
    expect(await aip151().observe(server, reference)).toMatchObject({
      meaning: 'working',
      intervalMs: 2_000,
    });
    const [polled] = lro.entries('polled', one.label);
    expect(polled?.target).toMatch(
      /^\/v1\/projects\/p\/operations\/[0-9a-f-]+\/a%2Bb%3Dc%3D%3D\/x%3Ay%252Fz%20%C3%A9~%25$/,
    );
    expect(await aip151().cancel(server, reference, async () => {})).toBe('acknowledged');
    expect(await aip151().observe(server, reference)).toMatchObject({ meaning: 'cancelled' });
  });

  it('may be over with its own reply, and keeps the name all the same', async () => {
    const one = call({ submit: ['done'], response: '{ "n": 12345678901234567890 }' });
    const submission = await submitCall(one.call);
    expect(submission).toMatchObject({
      kind: 'answered',
      result: { isToolError: false },
      reference: { remoteId: lro.entries('started', one.label)[0]?.name },
    });
    if (submission.kind !== 'answered') throw new Error(submission.kind);
    expect(Buffer.from(submission.result.bytes).toString()).toBe('{ "n": 12345678901234567890 }');
  });

  it('may be over without a name', async () => {
    const submission = await submitCall(call({ submit: ['done-nameless'], end: 'error' }).call);
    expect(submission).toMatchObject({ kind: 'answered', result: { isToolError: true } });
    expect(submission).not.toHaveProperty('reference');
  });

  it.each(['cancelled', 'both', 'codeless'])('over at once as %s is read by the next look', async (end) => {
    const submission = await submitCall(call({ submit: ['done'], end }).call);
    expect(submission.kind).toBe('referenced');
  });

  it.each([
    'lose',
    'cut',
    'empty',
    'object',
    'page',
    '202',
    '204',
    '500',
    '502',
    '503 UNAVAILABLE',
    '504 DEADLINE_EXCEEDED',
  ])('answered by %s is ambiguous: its work runs', async (word) => {
    const one = call({ submit: [word] });
    expect(await faultOf(submitCall(one.call))).toMatchObject({ kind: 'Ambiguous' });
    expect(lro.executions(one.label)).toBe(1);
  });

  it.each([
    'reset',
    'refuse 400 INVALID_ARGUMENT',
    'refuse 400 FAILED_PRECONDITION',
    'refuse 408',
    'refuse 501 UNIMPLEMENTED',
  ])('answered by %s is ambiguous too, although nothing ran: nobody can tell', async (word) => {
    expect(await faultOf(submitCall(call({ submit: [word] }).call))).toMatchObject({ kind: 'Ambiguous' });
  });

  it.each([
    'refuse 409',
    'refuse 409 ALREADY_EXISTS',
    'refuse 429',
    'refuse 409 RESOURCE_EXHAUSTED',
    'refuse 429 ABORTED',
  ])('answered by %s is ambiguous: status and word must be those of the contract', async (word) => {
    expect(await faultOf(submitCall(call({ submit: [word] }).call))).toMatchObject({ kind: 'Ambiguous' });
  });

  it.each(['401', '403', '404', '405', '413', '415', '409 ABORTED', '429 RESOURCE_EXHAUSTED'])(
    'answered by %s is refused: nothing was started',
    async (word) => {
      const one = call({ submit: [`refuse ${word}`] });
      const fault = await faultOf(submitCall(one.call));
      expect(fault).toMatchObject({ kind: 'RefusedByServer', wireCode: Number(word.slice(0, 3)) });
      expect(fault.message).toContain(`HTTP ${word}`);
    },
  );

  it('names the time the server asks for, by header or RetryInfo, the longer of both', async () => {
    const word = 'refuse 429 RESOURCE_EXHAUSTED retry-after 2 retry-info 3.5s';
    expect(await faultOf(submitCall(call({ submit: [word] }).call))).toMatchObject({ retryAfterMs: 3_500 });
  });

  it.each(['301', '302', '307', '308'])(
    'answered by the redirect %s is ambiguous, and never follows it',
    async (word) => {
      expect(await faultOf(submitCall(call({ submit: [word] }).call))).toMatchObject({ kind: 'Ambiguous' });
      expect(lro.entries('followed')).toEqual([]);
    },
  );

  it('to a closed port was not sent', async () => {
    const closed = operationServer('http://127.0.0.1:9/v1', declaredMethod());
    expect(await faultOf(submitCall(declaredCall(closed, { label: 'x' })))).toMatchObject({
      kind: 'NotSent',
    });
  });

  it('whose method is gone from the configuration was not sent', async () => {
    const session = await sessionOf(server);
    const bare = { ...server, methods: {} };
    const hooks = { afterSend: async () => {}, onProgress: () => {} };
    expect(await faultOf(aip151().submit(declaredCall(bare, {}), session, hooks))).toMatchObject({
      kind: 'NotSent',
    });
  });
});

describe('a request id', () => {
  const keyed = (label: string, plan: JsonObject, key = label) => {
    const own = operationServer(lro.url, declaredMethod({ requestIdField: 'requestId' }));
    return declaredCall(
      own,
      { label, plan },
      {
        submissionPolicy: 'request-id',
        keyName: 'requestId',
        submissionKey: key,
      },
    );
  };

  it('is a UUID4 that strict servers take, and the same each time', async () => {
    const first = await referenceOf(keyed('id-same', { durationMs: 60_000 }));
    const again = await referenceOf(keyed('id-same', { durationMs: 60_000 }));
    expect(again.remoteId).toBe(first.remoteId);
    expect(lro.executions('id-same')).toBe(1);
    expect(new Set(lro.entries('submitReceived', 'id-same').map(({ requestId }) => requestId)).size).toBe(1);
    await referenceOf(keyed('id-other', {}));
    const ids = [...lro.entries('started', 'id-same'), ...lro.entries('started', 'id-other')];
    expect(new Set(ids.map(({ requestId }) => requestId)).size).toBe(2);
  });

  it('sent again after a lost reply gives the first success, even where that is over by now', async () => {
    const one = keyed('id-lost', { submit: ['lose'], durationMs: 0 });
    expect(await faultOf(submitCall(one))).toMatchObject({ kind: 'Ambiguous' });
    expect(await submitCall(one)).toMatchObject({
      kind: 'answered',
      reference: { remoteId: lro.entries('started', 'id-lost')[0]?.name },
    });
    expect(lro.executions('id-lost')).toBe(1);
  });

  it('rides in the query where the body is one argument', async () => {
    const method = declaredMethod({
      requestIdField: 'requestId',
      path: '/{parent=projects/*}/reports?requestId={requestId}',
    });
    const own = operationServer(lro.url, method);
    const args = { label: 'id-query' };
    await submitCall(declaredCall(own, args, { submissionPolicy: 'request-id', keyName: 'requestId' }));
    const [seen] = lro.entries('submitReceived', 'id-query');
    expect(seen?.target).toMatch(/\?requestId=[0-9a-f-]{36}$/);
    expect(JSON.parse(seen?.body ?? '')).toEqual(args);
  });

  it('is not sent under another policy', async () => {
    const one = { ...keyed('id-not', {}), submissionPolicy: 'at-most-once' as const };
    await submitCall(one);
    expect(lro.entries('submitReceived', 'id-not')).toMatchObject([{ requestId: null }]);
  });
});
