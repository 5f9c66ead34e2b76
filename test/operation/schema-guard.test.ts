// Owns the tests of what is taken out of a stranger's schema before a validator sees it.
// Must never run a hostile pattern.

import { describe, expect, it } from 'vitest';
import type { JsonObject } from '../../operation/json.js';
import { guardSchema, isTamePattern } from '../../operation/schema-guard.js';

function nested(depth: number): JsonObject {
  return depth <= 1 ? {} : { items: nested(depth - 1) };
}

describe('a stranger’s schema', () => {
  it('is refused where it is nested deeper than the limit, through objects and arrays', () => {
    expect(guardSchema(nested(17)).kind).toBe('usable');
    expect(guardSchema(nested(18))).toEqual({
      kind: 'refused',
      reason: 'the schema is nested deeper than 16',
    });
    expect(guardSchema({ a: 1, anyOf: [[nested(15)], 1] }).kind).toBe('refused');
    expect(guardSchema({ anyOf: [[nested(14)]] }).kind).toBe('usable');
    expect(guardSchema(nested(5_000)).kind).toBe('refused');
  });

  it('is refused with more than 12 references, wherever they stand', () => {
    const refs = (count: number): JsonObject[] =>
      Array.from({ length: count }, (_, at) =>
        at % 2 === 0 ? { $ref: '#/$defs/a' } : { not: { $dynamicRef: '#a' } },
      );
    const usable = { $defs: { a: {} }, anyOf: refs(12) };
    expect(guardSchema(usable)).toEqual({ kind: 'usable', schema: usable });
    expect(guardSchema({ anyOf: refs(13) })).toEqual({
      kind: 'refused',
      reason: 'the schema has more than 12 references',
    });
    expect(guardSchema({ properties: { a: { allOf: refs(6) }, b: { items: refs(7) } } }).kind).toBe(
      'refused',
    );
    expect(guardSchema({ enum: ['$ref', null], title: '$ref'.repeat(20) }).kind).toBe('usable');
  });

  it('loses only the patterns that can hang a matcher', () => {
    const schema = {
      type: 'object',
      pattern: '(a+)+',
      required: ['pattern'],
      properties: {
        pattern: { type: 'string', pattern: '^[a-z]+$' },
        n: { anyOf: [{ pattern: '(a|a)*' }, null, 3] },
      },
      patternProperties: { '^x': { pattern: '(?=a)' }, '^y': {} },
    };
    expect(guardSchema(schema)).toEqual({
      kind: 'usable',
      schema: {
        type: 'object',
        required: ['pattern'],
        properties: { pattern: { type: 'string', pattern: '^[a-z]+$' }, n: { anyOf: [{}, null, 3] } },
        patternProperties: { '^x': {}, '^y': {} },
      },
    });
  });

  it('loses wide bounded repeats like endless ones, and keeps a member named __proto__ as a member', () => {
    expect(isTamePattern('^a{1,1000}b{1,9}')).toBe(true);
    expect(isTamePattern('^a{1,1000}b{1,1000}')).toBe(false);
    expect(isTamePattern('a{1,1000}')).toBe(false);
    const schema = JSON.parse('{"properties":{"__proto__":{"type":"string"}}}') as JsonObject;
    const guarded = guardSchema(schema);
    expect(guarded.kind === 'usable' && JSON.stringify(guarded.schema)).toBe(JSON.stringify(schema));
  });

  it('loses a whole set of member patterns where one of them is hostile', () => {
    expect(guardSchema({ patternProperties: { '(a+)+': {}, '^y': {} } })).toEqual({
      kind: 'usable',
      schema: {},
    });
    const named = { properties: { '(a+)+': {} } };
    expect(guardSchema(named)).toEqual({ kind: 'usable', schema: named });
    const odd = { patternProperties: ['(a+)+'], pattern: { const: '(a+)+' } };
    expect(guardSchema(odd)).toEqual({ kind: 'usable', schema: odd });
    expect(guardSchema({ patternProperties: null })).toEqual({
      kind: 'usable',
      schema: { patternProperties: null },
    });
    expect(guardSchema({ patternProperties: 'x' })).toEqual({
      kind: 'usable',
      schema: { patternProperties: 'x' },
    });
  });
});

describe('a pattern', () => {
  it('is tame while it is short and flat, with narrow repeats, or one wide repeat after its anchor', () => {
    for (const pattern of [
      '',
      '^\\d{4}-\\d{2}$',
      '^[a-z]+$',
      '^a{2,}b',
      '^[^@]*@x$',
      '(ab)c',
      'a{1,3}a{1,3}a{1,3}',
      'a'.repeat(256),
    ]) {
      expect([pattern, isTamePattern(pattern)]).toEqual([pattern, true]);
    }
  });

  it('is hostile with repeated groups, references, look-arounds, two wide repeats, one without its anchor, or sheer length', () => {
    const hostile = [
      '(a+)+',
      '(a)*',
      '(a)?',
      '(a){9}',
      '(a)\\1',
      '\\k<n>',
      '(?:a)',
      '(?=a)',
      '^a+b*',
      '^a{1,}b{12,}',
      '^[a-z]+@[a-z]+$',
      '^a+b*c+',
      'a+',
      'a*$',
      'a{1,}',
      'a{1,10}^',
    ];
    for (const pattern of [...hostile, 'a'.repeat(257)]) {
      expect([pattern, isTamePattern(pattern)]).toEqual([pattern, false]);
    }
  });
});

describe('many small repeats', () => {
  it('are refused: each optional piece doubles the ways to match; so is a choice beside a wide repeat', () => {
    expect(isTamePattern(`^${'a?'.repeat(26)}b`)).toBe(false);
    expect(isTamePattern('^a{0,9}b{0,9}c{0,9}d{0,9}$')).toBe(false);
    expect(isTamePattern('^a?b?c?$')).toBe(true);
    expect(isTamePattern('^x|a+b')).toBe(false);
    expect(isTamePattern('^\\d{4}-\\d{2}-\\d{2}$')).toBe(true);
  });
});
