// Owns the scanner against JSON.parse: whatever one takes the other takes, and the slices are the received bytes.

import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { JsonSliceError, sliceElements, sliceMembers } from '../../protocols/json-slice.js';

const bytesOf = (text: string): Uint8Array => new TextEncoder().encode(text);
const DEEP = 64;

function isAccepted(text: string): boolean {
  try {
    sliceMembers(bytesOf(text), DEEP);
    return true;
  } catch (error) {
    if (error instanceof JsonSliceError) return false;
    throw error;
  }
}

function isObjectForJsonParse(text: string): boolean {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === 'object' && value !== null && !Array.isArray(value);
  } catch {
    return false;
  }
}

const jsonObject = fc.dictionary(fc.string(), fc.jsonValue({ maxDepth: 6 }));
const spacing = fc.constantFrom(0, 1, 3, '\t');

describe('sliceMembers', () => {
  it('cuts slices that parse to the very members JSON.parse finds', () => {
    fc.assert(
      fc.property(jsonObject, spacing, (value, space) => {
        const bytes = bytesOf(JSON.stringify(value, null, space));
        const parsed = JSON.parse(new TextDecoder().decode(bytes)) as Record<string, unknown>;
        const spans = sliceMembers(bytes, DEEP);
        expect(new Set(spans.keys())).toEqual(new Set(Object.keys(parsed)));
        for (const [name, { start, end }] of spans) {
          expect(JSON.parse(new TextDecoder().decode(bytes.subarray(start, end)))).toEqual(parsed[name]);
        }
      }),
    );
  });

  it('accepts an object exactly where JSON.parse does, after any one edit', () => {
    const edit = fc.record({
      at: fc.nat(),
      cut: fc.nat({ max: 2 }),
      put: fc.constantFrom('', ...Array.from('{}[]",:\\0-1.eE+ tu\u0001')),
    });
    fc.assert(
      fc.property(jsonObject, edit, (value, { at, cut, put }) => {
        const text = JSON.stringify(value);
        const from = at % (text.length + 1);
        const edited = text.slice(0, from) + put + text.slice(from + cut);
        expect(isAccepted(edited)).toBe(isObjectForJsonParse(edited));
      }),
      { numRuns: 2_000 },
    );
  });

  it('refuses every proper prefix of an object', () => {
    const text = '{"jsonrpc":"2.0","id":"a","result":{"n":-1.5e+3,"list":[true,null,"\\u00e9\\n"]}}';
    for (let end = 0; end < text.length; end += 1) expect(isAccepted(text.slice(0, end))).toBe(false);
    expect(isAccepted(text)).toBe(true);
  });

  it('keeps big integers, key order, spaces and escapes as they were received', () => {
    const result = '{ "b":12345678901234567890 , "a":1.0, "s":"\\u0041" }';
    const bytes = bytesOf(`{"id":1,"result" : ${result} ,"jsonrpc":"2.0"}`);
    const span = sliceMembers(bytes, DEEP).get('result');
    expect(new TextDecoder().decode(bytes.subarray(span?.start, span?.end))).toBe(result);
  });

  it('takes the last of repeated members, also where one name is written with escapes', () => {
    const bytes = bytesOf('{"result":1,"\\u0072esult":2}');
    const span = sliceMembers(bytes, DEEP).get('result');
    expect(new TextDecoder().decode(bytes.subarray(span?.start, span?.end))).toBe('2');
  });

  it('refuses what is nested deeper than the limit and costs no stack for it', () => {
    const nested = (depth: number): Uint8Array => bytesOf(`{"r":${'['.repeat(depth)}${']'.repeat(depth)}}`);
    expect(() => sliceMembers(nested(DEEP - 1), DEEP)).not.toThrow();
    expect(() => sliceMembers(nested(DEEP), DEEP)).toThrow(JsonSliceError);
    expect(() => sliceMembers(nested(1_000_000), DEEP)).toThrow(/too deeply/);
    expect(() => sliceMembers(nested(500_000), 1_000_000)).not.toThrow();
  });

  it.each([
    '{}x',
    '{} {}',
    '[]',
    '',
    'null',
    '{"a":01}',
    '{"a":+1}',
    '{"a":.5}',
    '{"a":1.}',
    '{"a":tru}',
    '{a:1}',
    "{'a':1}",
    '{"a":1,}',
    '{"a":"\n"}',
  ])('refuses %j', (text) => {
    expect(isAccepted(text)).toBe(false);
  });
});

describe('sliceElements', () => {
  const elementsOf = (text: string, depth = DEEP): unknown[] =>
    [...sliceElements(bytesOf(text), depth)].map(
      ({ start, end }) => JSON.parse(new TextDecoder().decode(bytesOf(text).subarray(start, end))) as unknown,
    );

  it('cuts slices that parse to the very elements JSON.parse finds', () => {
    fc.assert(
      fc.property(fc.array(fc.jsonValue({ maxDepth: 4 })), spacing, (value, space) => {
        const text = JSON.stringify(value, null, space);
        expect(elementsOf(text)).toEqual(JSON.parse(text));
      }),
    );
  });

  it.each(['', '{}', '[1', '[1,]', '[1 2]', '[,1]', '[1]x', '[01]'])('refuses %j', (text) => {
    expect(() => elementsOf(text)).toThrow(JsonSliceError);
  });

  it('refuses elements that are nested too deeply', () => {
    expect(elementsOf('[[[1]]]', 3)).toEqual([[[1]]]);
    expect(() => elementsOf('[[[1]]]', 2)).toThrow(/too deeply/);
  });
});
