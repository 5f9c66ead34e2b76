// Owns the flag on a stored result: does it fit what the tool has published of its output?
// A miss is never a failure: the tool did its work.

import { expect, test } from 'vitest';
import type { Ports } from '../../activities/ports.js';
import { resultFrom } from '../../activities/steps/results.js';
import type { JsonValue } from '../../operation/json.js';
import { LIMITS } from '../../operation/limits.js';
import { checkSchema } from '../../primitives/node-primitives.js';

const SCHEMA = { type: 'object', properties: { n: { type: 'number' } }, required: ['n'] };

function flagOf(
  structuredContent: JsonValue | undefined,
  more: object = {},
  schema: typeof SCHEMA | null = SCHEMA,
) {
  const received = {
    bytes: Buffer.from('{}'),
    mediaType: 'application/json',
    isProtocolError: false,
    isToolError: false,
    structuredContent,
    ...more,
  };
  return resultFrom(received, schema, { checkSchema } as unknown as Ports).stored.outputSchema;
}

test('a structured result is checked against the output schema of its tool, and a miss is kept as a flag', () => {
  expect(flagOf({ n: 1 })).toBe('fits');
  expect(flagOf({ n: 'one' })).toBe('missed');
  expect(flagOf(undefined)).toBe('missed');
});

test('an error, a tool without an output schema and a result too large to be looked through are not checked', () => {
  expect(flagOf(undefined, { isToolError: true })).toBe('none');
  expect(flagOf(undefined, { isProtocolError: true })).toBe('none');
  expect(flagOf({ n: 1 }, {}, null)).toBe('none');
  expect(flagOf({ n: 1 }, { bytes: Buffer.alloc(LIMITS.checkedResultBytes + 1) })).toBe('unchecked');
});
