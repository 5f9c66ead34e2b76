// Owns which dialect a stranger's schema is checked by, and that nothing is fetched for it.
// What is taken out of a schema before it is checked is in test/operation/schema-guard.test.ts.

import { expect, test } from 'vitest';
import type { JsonObject } from '../../operation/json.js';
import { checkSchema } from '../../primitives/node-primitives.js';

const PAIR: JsonObject = { prefixItems: [{ type: 'number' }, { type: 'string' }] };
const OLD_PAIR: JsonObject = { items: [{ type: 'number' }, { type: 'string' }] };

test('a schema without a dialect is one of 2020-12', () => {
  expect(checkSchema(PAIR, [1, 'x'])).toBeNull();
  expect(checkSchema(PAIR, ['x', 1])).toMatch(/^\/[01]: /);
});

test.each([
  ['https://json-schema.org/draft/2020-12/schema', PAIR],
  ['https://json-schema.org/draft/2019-09/schema', OLD_PAIR],
  ['http://json-schema.org/draft-07/schema#', OLD_PAIR],
  ['http://json-schema.org/draft-07/schema', OLD_PAIR],
  ['http://json-schema.org/draft-04/schema#', OLD_PAIR],
])('a schema of %s is checked by that dialect', ($schema, pair) => {
  expect(checkSchema({ $schema, ...pair }, [1, 'x'])).toBeNull();
  expect(checkSchema({ $schema, ...pair }, ['x', 1])).toMatch(/^\/[01]: /);
});

test('what stands beside a reference counts by the declared dialect', () => {
  const schema = { $defs: { any: {} }, properties: { a: { $ref: '#/$defs/any', minimum: 5 } } };
  expect(checkSchema(schema, { a: 1 })).toMatch(/^\/a: /);
  expect(checkSchema({ $schema: 'http://json-schema.org/draft-07/schema#', ...schema }, { a: 1 })).toBeNull();
});

test.each(['https://example.com/my-dialect', 'constructor', '', 7, null])(
  'a schema of the dialect %j is not checked, and says why',
  ($schema) => {
    const sentence = 'the schema cannot be checked: its $schema names a dialect that is not supported';
    expect(checkSchema({ $schema, type: 'object' }, {})).toBe(sentence);
  },
);

test('a reference into the network is not followed, and fits nothing', () => {
  const schema = { type: 'object', properties: { a: { $ref: 'http://127.0.0.1:1/schema.json' } } };
  expect(checkSchema(schema, { a: 1 })).toMatch(/^the schema cannot be checked: Unresolved \$ref/);
});
