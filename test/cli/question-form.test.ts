// Owns the proof that every field a question may have (MCP 2025-11-25 elicitation) reaches a person as it was meant.
// Must never open a prompt: only the pure part is here.

import { describe, expect, test } from 'vitest';
import { countObjection, type Field, fieldLines, fieldsOf, typedValue } from '../../cli/question-form.js';
import type { JsonObject } from '../../operation/json.js';

function only(property: JsonObject, required: readonly string[] = []): Field {
  const [field] = fieldsOf({ type: 'object', properties: { it: property }, required });
  if (!field) throw new Error('no field');
  return field;
}

describe('fields', () => {
  test('a title is the label, the name where there is none, and both keep their description', () => {
    expect(only({ type: 'string', title: 'Your name', description: 'As in the passport' })).toMatchObject({
      name: 'it',
      label: 'Your name',
      description: 'As in the passport',
    });
    expect(only({ type: 'string' })).toMatchObject({ label: 'it', description: null });
  });

  test('required is told from optional, and the schema keeps its order', () => {
    const fields = fieldsOf({
      properties: { z: { type: 'string' }, a: { type: 'boolean' } },
      required: ['a'],
    });
    expect(fields.map(({ name, isRequired }) => [name, isRequired])).toEqual([
      ['z', false],
      ['a', true],
    ]);
  });

  test('text keeps format, bounds and default', () => {
    expect(
      only({ type: 'string', format: 'email', minLength: 3, maxLength: 9, default: 'a@b' }),
    ).toMatchObject({
      kind: 'text',
      format: 'email',
      minLength: 3,
      maxLength: 9,
      initial: 'a@b',
    });
  });

  test('a number is told from a whole number', () => {
    expect(only({ type: 'number', default: 1.5 })).toMatchObject({
      kind: 'number',
      isInteger: false,
      initial: 1.5,
    });
    expect(only({ type: 'integer', minimum: 1 })).toMatchObject({
      kind: 'number',
      isInteger: true,
      minimum: 1,
    });
  });

  test('a default of false is a default', () => {
    expect(only({ type: 'boolean', default: false })).toMatchObject({ kind: 'boolean', initial: false });
    expect(only({ type: 'boolean' })).toMatchObject({ initial: null });
  });

  const titled = [
    { const: 'r', title: 'Red' },
    { const: 'g', title: 'Green' },
  ];
  const choices = [
    { value: 'r', label: 'Red' },
    { value: 'g', label: 'Green' },
  ];

  test('all spellings of a choice come to the same', () => {
    expect(only({ type: 'string', oneOf: titled, default: 'g' })).toMatchObject({
      kind: 'choice',
      choices,
      initial: 'g',
    });
    expect(only({ type: 'string', enum: ['r', 'g'], enumNames: ['Red', 'Green'] })).toMatchObject({
      choices,
    });
    expect(only({ type: 'string', enum: ['r'] })).toMatchObject({ choices: [{ value: 'r', label: 'r' }] });
  });

  test('both spellings of several choices come to the same, with the defaults that are choices', () => {
    const bounds = { minItems: 1, maxItems: 2, default: ['g', 'x'] };
    const expected = { kind: 'choices', choices, initial: ['g'], minItems: 1, maxItems: 2 };
    expect(only({ type: 'array', items: { anyOf: titled }, ...bounds })).toMatchObject(expected);
    expect(only({ type: 'array', items: { type: 'string', enum: ['r', 'g'] } })).toMatchObject({
      kind: 'choices',
    });
  });

  test('what forms have no field for is asked for as JSON', () => {
    expect(only({ type: 'object', default: { a: 1 } })).toMatchObject({ kind: 'json', initial: '{"a":1}' });
    expect(only({ type: 'array', items: { type: 'number' } })).toMatchObject({ kind: 'json' });
    expect(only({ oneOf: [{ type: 'string' }, { type: 'number' }] })).toMatchObject({ kind: 'json' });
  });

  test('a question without a schema has no fields', () => {
    expect(fieldsOf(null)).toEqual([]);
    expect(fieldsOf({ type: 'object' })).toEqual([]);
  });

  test('who writes a reply as JSON is told what it may hold', () => {
    expect(fieldLines([only({ type: 'string', oneOf: titled }, ['it'])])).toEqual([
      'reply field "it": "r" | "g"',
    ]);
    expect(fieldLines([only({ type: 'integer' })])).toEqual(['reply field "it" (optional): whole number']);
  });
});

describe('typed values', () => {
  test('numbers become numbers, text stays text', () => {
    expect(typedValue(only({ type: 'number' }), ' 1.5 ')).toEqual({ kind: 'value', value: 1.5 });
    expect(typedValue(only({ type: 'string' }), '1.5')).toEqual({ kind: 'value', value: '1.5' });
  });

  test('left empty is left out where it may be, and an objection where not', () => {
    expect(typedValue(only({ type: 'number' }), '')).toEqual({ kind: 'omitted' });
    expect(typedValue(only({ type: 'string' }, ['it']), '').kind).toBe('objection');
  });

  test.each<[JsonObject, string]>([
    [{ type: 'integer' }, '1.5'],
    [{ type: 'number' }, 'many'],
    [{ type: 'number', minimum: 2 }, '1'],
    [{ type: 'number', maximum: 2 }, '3'],
    [{ type: 'string', minLength: 2 }, 'a'],
    [{ type: 'string', maxLength: 1 }, 'ab'],
    [{ type: 'object' }, '{'],
  ])('%j objects to "%s"', (property, typed) => {
    expect(typedValue(only(property), typed).kind).toBe('objection');
  });

  test('length counts characters, not UTF-16 units', () => {
    expect(typedValue(only({ type: 'string', maxLength: 1 }), '😀')).toEqual({ kind: 'value', value: '😀' });
  });

  test('too few and too many choices are objected to, none is fine where the field is optional', () => {
    const property = { type: 'array', items: { enum: ['a', 'b', 'c'] }, minItems: 2, maxItems: 2 };
    const required = only(property, ['it']) as Extract<Field, { kind: 'choices' }>;
    const optional = only(property) as Extract<Field, { kind: 'choices' }>;
    expect([0, 1, 2, 3].map((count) => countObjection(required, count) === null)).toEqual([
      false,
      false,
      true,
      false,
    ]);
    expect(countObjection(optional, 0)).toBeNull();
    expect(countObjection(optional, 1)).not.toBeNull();
  });
});
