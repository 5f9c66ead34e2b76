// Owns what becomes of credentials under AIP-151: they go with every request, and no server brings them back into our texts.
// Must never plant one where bytes have to stay as they are: a result is the tool's own.

import { afterEach, beforeEach, expect, it } from 'vitest';
import type { RemoteReference } from '../../operation/row.js';
import type { ToolServer } from '../../protocols/adapter.js';
import {
  aip151,
  declaredCall,
  declaredMethod,
  faultOf,
  operationServer,
  sessionOf,
  submitCall,
} from './declared.js';
import { ScriptedServer, sendJson } from './scripted-server.js';

const SECRETS = ['Tok-3n.Secret+Value/9==', 'alice:pa55:word', 'meth0d-key-4711', 'Qu3ry Secret&x'] as const;
const [TOKEN, BASIC, OF_METHOD, OF_URL] = SECRETS;
const SPELLINGS = SECRETS.flatMap((secret) => [
  secret,
  secret.toUpperCase(),
  encodeURIComponent(secret),
  Buffer.from(secret).toString('base64'),
]);
const ECHO = `<${SPELLINGS.join('> <')}>`;
const LIST = { path: '/{parent=projects/*}/operations', match: {}, startedAt: '/at', idIsOurs: false };

let scripted: ScriptedServer;
let server: ToolServer;
let reference: RemoteReference;
beforeEach(async () => {
  scripted = await ScriptedServer.start();
  const url = new URL(scripted.url);
  url.searchParams.set('key', OF_URL);
  const method = declaredMethod(
    { headers: { 'X-Api-Key': OF_METHOD } },
    { list: LIST, deleteAfterReceipt: '/{name=**}' },
  );
  const headers = {
    authorization: `Bearer ${TOKEN}`,
    'x-upstream': `Basic ${Buffer.from(BASIC).toString('base64')}`,
  };
  server = operationServer(url.href, method, { headers });
  reference = { remoteId: 'operations/1', locator: await sessionOf(server) };
});
afterEach(() => scripted.stop());

const cancel = () => aip151().cancel(server, reference, async () => {});
const list = () => aip151().findBySubmission(declaredCall(server, {}), reference.locator, 1);

it('the headers of server and method, and the query of the URL, go with every request', async () => {
  scripted.script = (_, response) => sendJson(response, 200, { name: 'operations/1' });
  await submitCall(declaredCall(server, {}));
  await aip151().observe(server, reference);
  await cancel();
  await list();
  await aip151().release(server, reference.locator, 'operations/1');
  expect(scripted.seen.map(({ httpMethod }) => httpMethod)).toEqual(['POST', 'GET', 'POST', 'GET', 'DELETE']);
  for (const { headers, path } of scripted.seen) {
    expect(headers).toMatchObject({ authorization: `Bearer ${TOKEN}`, 'x-api-key': OF_METHOD });
    expect(new URLSearchParams(path.split('?')[1]).get('key')).toBe(OF_URL);
  }
});

function expectClean(said: unknown, isQuoted = true): void {
  const error = said instanceof Error ? `${said.message} ${said.stack}` : '';
  const all = `${error} ${JSON.stringify(said)}`.toLowerCase();
  if (isQuoted) expect(all).toContain('[redacted]');
  for (const spelling of SPELLINGS) expect(all).not.toContain(spelling.toLowerCase());
}

it.each([
  [400, 'INVALID_ARGUMENT'],
  [403, 'PERMISSION_DENIED'],
  [404, 'NOT_FOUND'],
  [503, 'UNAVAILABLE'],
])('an error %i that quotes every credential quotes none to us', async (status, word) => {
  const body = { error: { code: status, status: word, message: ECHO } };
  scripted.script = (_, response) => sendJson(response, status, body);
  expectClean(await faultOf(submitCall(declaredCall(server, {}))));
  expectClean(await faultOf(aip151().observe(server, reference)));
  const cancelled = await cancel().catch((error: unknown) => error);
  expectClean(cancelled, cancelled instanceof Error);
  expectClean(await list().catch((error: unknown) => error));
  const lost = await aip151()
    .fetchResult(server, reference)
    .catch((error: unknown) => error);
  expectClean(lost);
});

it.each([1, 9])('an operation whose error %i quotes them quotes none in its status', async (code) => {
  const operation = { name: 'operations/1', done: true, error: { code, message: ECHO } };
  scripted.script = (_, response) => sendJson(response, 200, operation);
  const { inline, ...seen } = await aip151().observe(server, reference);
  expectClean(seen);
  // The error itself is the tool's own data, and stays byte for byte.
  if (code !== 1) expect(inline).toMatchObject({ kind: 'result', result: { isToolError: true } });
});

it('what is stored of a reference holds no credential, nor a digest of one', async () => {
  scripted.script = (_, response) => sendJson(response, 200, { name: 'operations/1' });
  const submission = await submitCall(declaredCall(server, {}));
  expectClean(submission, false);
  const session = await sessionOf(server);
  const other = operationServer(
    server.url,
    declaredMethod(
      { headers: { 'X-Api-Key': 'another-key-4712' } },
      { list: LIST, deleteAfterReceipt: '/{name=**}' },
    ),
  );
  expect(await sessionOf(other)).toEqual(session);
});
