// Owns the mapping from a question's schema to fields that a terminal can ask for, and from typed text to values.
// Must never talk to the terminal, nor be the judge of a reply: the client and the answer step check the schema.

import type { JsonObject, JsonValue } from '../operation/json.js';

export interface Choice {
  readonly value: string;
  readonly label: string;
}

interface FieldBase {
  readonly name: string;
  /** Title, else name. */
  readonly label: string;
  readonly description: string | null;
  readonly isRequired: boolean;
}

export type Field = FieldBase &
  (
    | {
        readonly kind: 'text';
        readonly initial: string | null;
        readonly format: string | null;
        readonly minLength: number | null;
        readonly maxLength: number | null;
      }
    | {
        readonly kind: 'number';
        readonly initial: number | null;
        readonly isInteger: boolean;
        readonly minimum: number | null;
        readonly maximum: number | null;
      }
    | { readonly kind: 'boolean'; readonly initial: boolean | null }
    | { readonly kind: 'choice'; readonly initial: string | null; readonly choices: readonly Choice[] }
    | {
        readonly kind: 'choices';
        readonly initial: readonly string[];
        readonly choices: readonly Choice[];
        readonly minItems: number | null;
        readonly maxItems: number | null;
      }
    /** A schema that forms have no field for: asked for as JSON. */
    | { readonly kind: 'json'; readonly initial: string | null }
  );

/** In the order of the schema; a schema without properties has no fields. */
export function fieldsOf(schema: JsonObject | null): readonly Field[] {
  const properties = objectOr(schema?.['properties']);
  const required = schema?.['required'];
  const requiredNames = Array.isArray(required) ? required : [];
  return Object.entries(properties).map(([name, property]) =>
    fieldOf(name, objectOr(property), requiredNames.includes(name)),
  );
}

function fieldOf(name: string, property: JsonObject, isRequired: boolean): Field {
  const label = textOr(property['title'], name);
  const base: FieldBase = { name, label, description: textOr(property['description'], null), isRequired };
  const initial = property['default'];
  const choices = choicesOf(property);
  if (choices) return { ...base, kind: 'choice', choices, initial: oneOfChoices(initial, choices) };
  switch (property['type']) {
    case 'string':
      return {
        ...base,
        kind: 'text',
        initial: textOr(initial, null),
        format: textOr(property['format'], null),
        minLength: numberOr(property['minLength'], null),
        maxLength: numberOr(property['maxLength'], null),
      };
    case 'number':
    case 'integer':
      return {
        ...base,
        kind: 'number',
        initial: numberOr(initial, null),
        isInteger: property['type'] === 'integer',
        minimum: numberOr(property['minimum'], null),
        maximum: numberOr(property['maximum'], null),
      };
    case 'boolean':
      return { ...base, kind: 'boolean', initial: typeof initial === 'boolean' ? initial : null };
    case 'array':
      return arrayField(base, property);
    default:
      return jsonField(base, initial);
  }
}

function arrayField(base: FieldBase, property: JsonObject): Field {
  const initial = property['default'];
  const choices = choicesOf(objectOr(property['items']));
  if (!choices) return jsonField(base, initial);
  const chosen = Array.isArray(initial) ? initial : [];
  return {
    ...base,
    kind: 'choices',
    choices,
    initial: choices.map(({ value }) => value).filter((value) => chosen.includes(value)),
    minItems: numberOr(property['minItems'], null),
    maxItems: numberOr(property['maxItems'], null),
  };
}

function jsonField(base: FieldBase, initial: JsonValue | undefined): Field {
  return { ...base, kind: 'json', initial: initial === undefined ? null : JSON.stringify(initial) };
}

/** The four spellings of MCP 2025-11-25: `enum`, `enum` with `enumNames`, `oneOf` and `anyOf` of titled constants. */
function choicesOf(schema: JsonObject): readonly Choice[] | null {
  const titled = schema['oneOf'] ?? schema['anyOf'];
  if (Array.isArray(titled)) {
    const choices = titled.map((entry: JsonValue) => {
      const { const: value, title } = objectOr(entry);
      return typeof value === 'string' ? { value, label: textOr(title, value) } : null;
    });
    // One that is no constant makes it another kind of schema.
    return choices.every((choice) => choice !== null) && choices.length > 0 ? choices : null;
  }
  const values = schema['enum'];
  if (!Array.isArray(values) || values.length === 0) return null;
  const names = Array.isArray(schema['enumNames']) ? schema['enumNames'] : [];
  const choices = values.map((value: JsonValue, index) =>
    typeof value === 'string' ? { value, label: textOr(names[index], value) } : null,
  );
  return choices.every((choice) => choice !== null) ? choices : null;
}

function oneOfChoices(initial: JsonValue | undefined, choices: readonly Choice[]): string | null {
  return choices.find(({ value }) => value === initial)?.value ?? null;
}

/** What a reply may hold, for a person who writes it as JSON. */
export function fieldLines(fields: readonly Field[]): readonly string[] {
  return fields.map((field) => {
    const optional = field.isRequired ? '' : ' (optional)';
    return `reply field "${field.name}"${optional}: ${domainOf(field)}`;
  });
}

function domainOf(field: Field): string {
  switch (field.kind) {
    case 'choice':
      return field.choices.map(({ value }) => JSON.stringify(value)).join(' | ');
    case 'choices':
      return `list of ${field.choices.map(({ value }) => JSON.stringify(value)).join(' | ')}`;
    case 'number':
      return field.isInteger ? 'whole number' : 'number';
    case 'boolean':
      return 'true | false';
    case 'text':
      return field.format === null ? 'text' : `text (${field.format})`;
    case 'json':
      return 'JSON';
  }
}

export type TypedValue =
  | { readonly kind: 'value'; readonly value: JsonValue }
  /** Left empty, and may be. */
  | { readonly kind: 'omitted' }
  | { readonly kind: 'objection'; readonly message: string };

/** What typed text means for a field that is filled in by typing. */
export function typedValue(field: Field, typed: string): TypedValue {
  if (typed.trim() === '' && !(field.kind === 'text' && typed !== '')) {
    return field.isRequired ? objection('an answer is required') : { kind: 'omitted' };
  }
  if (field.kind === 'number') return typedNumber(field, typed.trim());
  if (field.kind === 'json') return typedJson(typed);
  if (field.kind !== 'text') return { kind: 'value', value: typed };
  // JSON schema counts characters, not UTF-16 units.
  const characters = Array.from(typed).length;
  if (field.minLength !== null && characters < field.minLength) {
    return objection(`at least ${field.minLength} characters`);
  }
  if (field.maxLength !== null && characters > field.maxLength) {
    return objection(`at most ${field.maxLength} characters`);
  }
  return { kind: 'value', value: typed };
}

function typedNumber(field: Extract<Field, { kind: 'number' }>, typed: string): TypedValue {
  const value = Number(typed);
  if (!Number.isFinite(value)) return objection('a number, please');
  if (field.isInteger && !Number.isSafeInteger(value)) return objection('a whole number, please');
  if (field.minimum !== null && value < field.minimum) return objection(`at least ${field.minimum}`);
  if (field.maximum !== null && value > field.maximum) return objection(`at most ${field.maximum}`);
  return { kind: 'value', value };
}

function typedJson(typed: string): TypedValue {
  try {
    return { kind: 'value', value: JSON.parse(typed) as JsonValue };
  } catch {
    return objection('this field takes JSON');
  }
}

/** Null where so many may be chosen. */
export function countObjection(field: Extract<Field, { kind: 'choices' }>, count: number): string | null {
  if (count === 0 && !field.isRequired) return null;
  if (field.minItems !== null && count < field.minItems) return `choose at least ${field.minItems}`;
  if (field.maxItems !== null && count > field.maxItems) return `choose at most ${field.maxItems}`;
  return null;
}

function objection(message: string): TypedValue {
  return { kind: 'objection', message };
}

function objectOr(value: JsonValue | undefined): JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as JsonObject) : {};
}

function textOr<Fallback extends string | null>(
  value: JsonValue | undefined,
  fallback: Fallback,
): string | Fallback {
  return typeof value === 'string' && value !== '' ? value : fallback;
}

function numberOr(value: JsonValue | undefined, fallback: null): number | null {
  return typeof value === 'number' ? value : fallback;
}
