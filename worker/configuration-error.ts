// Owns the one error of reading configuration. Its texts name paths, keys and what is allowed; must never hold a
// value: any of them may be a secret, or have been expanded from one.

/** One mistake: where, and what is allowed there. */
export interface Mistake {
  /** E.g. `mcpServers.search.durable.tools.find.waitBudget`, or the file. */
  readonly path: string;
  readonly message: string;
}

const brand: unique symbol = Symbol.for('durable-tool-calls/ConfigurationError');

/** All mistakes of one reading; `path` is the first one's. */
export class ConfigurationError extends Error {
  override readonly name = 'ConfigurationError';
  readonly path: string;
  readonly mistakes: readonly Mistake[];
  readonly [brand] = true;

  constructor(first: Mistake, ...more: readonly Mistake[]) {
    const mistakes = [first, ...more];
    super(mistakes.map(({ path, message }) => `${path}: ${message}`).join('\n'));
    this.path = first.path;
    this.mistakes = mistakes;
  }

  /** Works over two copies of this package in one process, where `instanceof` does not. */
  static isInstance(value: unknown): value is ConfigurationError {
    return typeof value === 'object' && value !== null && brand in value;
  }
}

/** A path in JavaScript's spelling; keys that are no plain words get brackets and quotes. */
export function pathOf(keys: readonly PropertyKey[]): string {
  return keys
    .map((key, index) => {
      if (typeof key === 'number') return `[${key}]`;
      const text = String(key);
      if (!/^[\w-]+$/.test(text)) return `[${JSON.stringify(text)}]`;
      return index === 0 ? text : `.${text}`;
    })
    .join('');
}

/** For a sentence: `"a", "b" or "c"`. */
export function listOf(words: readonly string[]): string {
  const quoted = words.map((word) => JSON.stringify(word));
  const last = quoted.at(-1) ?? '';
  return quoted.length < 2 ? last : `${quoted.slice(0, -1).join(', ')} or ${last}`;
}
