// Owns the tests of what goes into each digest and derived key.
// Must never recompute an expectation with the code under test: it sees what was hashed.

import { createHash } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import * as digests from '../../operation/digests.js';
import type { JsonValue } from '../../operation/json.js';

/** Sorted members stand in for RFC 8785; the digest shows its own input. */
const shown: digests.DigestPrimitives = {
  canonicalize: (value) => JSON.stringify(value, (_key, member: JsonValue) => sorted(member)),
  sha256Hex: (text) => `<${text}>`,
};

function sorted(value: JsonValue): JsonValue {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return value;
  return Object.fromEntries(Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1)));
}

const real: digests.DigestPrimitives = {
  ...shown,
  sha256Hex: (text) => createHash('sha256').update(text).digest('hex'),
};

describe('digests', () => {
  it('take server, tool and arguments, and nothing else, as what is asked', () => {
    const request = { server: 's', tool: 't', arguments: { b: 1, a: 2 }, callNodeId: 'n' };
    expect(digests.requestDigest(request, shown)).toBe(
      '<{"arguments":{"a":2,"b":1},"server":"s","tool":"t"}>',
    );
  });

  it('take a value as its canonical JSON', () => {
    expect(digests.jsonDigest({ z: 1, a: [true] }, shown)).toBe('<{"a":[true],"z":1}>');
    expect(digests.jsonDigest({}, real)).toBe(
      '44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a',
    );
  });

  it('derive the submission key from the callNodeId alone, for ever the same', () => {
    expect(digests.submissionKey('graph/node-1', real)).toBe('dtc-56246340f3ecc0770874d0d847ba843f27bc6b23');
    expect(digests.submissionKey('graph/node-2', real)).not.toBe(digests.submissionKey('graph/node-1', real));
    expect(digests.submissionKey('n', shown)).toBe('dtc-<submission:n>');
  });

  it('derive a request id in the form of a UUID4, for ever the same', () => {
    const id = digests.requestId('dtc-56246340f3ecc0770874d0d847ba843f27bc6b23', real);
    expect(id).toBe('899f54af-b33a-4252-a495-13990b641714');
    expect(digests.requestId('other', real)).not.toBe(id);
    // Strict servers refuse any other version or variant, whatever the hash begins with.
    for (let key = 0; key < 500; key += 1) {
      expect(digests.requestId(`dtc-${key}`, real)).toMatch(
        /^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/,
      );
    }
  });

  it('bind a round to reference, wire key and request', () => {
    const round = { remoteId: 'task-7', wireKey: 's1/0', request: { message: 'Which?' } };
    const id = digests.roundId(round, real);
    expect(id).toMatch(/^[0-9a-f]{32}$/);
    expect(digests.roundId(round, { ...shown, sha256Hex: (text) => text.padEnd(90, '.') }).length).toBe(32);
    expect(digests.roundId(round, shown)).toBe('<{"remoteId":"task-7","request":');
    for (const other of [{ remoteId: 'task-8' }, { wireKey: 's1/1' }, { request: { message: 'What?' } }]) {
      expect(digests.roundId({ ...round, ...other }, real)).not.toBe(id);
    }
  });

  it('take action and content as a reply', () => {
    const reply = { action: 'accept', content: { n: 1 }, replyToken: 'x' };
    expect(digests.replyDigest(reply, shown)).toBe('<{"action":"accept","content":{"n":1}}>');
  });
});
