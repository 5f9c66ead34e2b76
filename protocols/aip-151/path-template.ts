// Owns path templates in the spelling of google.api.http: reading them, and putting values into them. Pure.
// Must never let a value change which path is meant: everything but its own slashes is percent-encoded.

export interface Variable {
  /** Dotted path of the argument, e.g. `parent` or `backup.name`. */
  readonly name: string;
  /** Segments the value must have: literals, `*` for one, a last `**` for any number. */
  readonly pattern: readonly string[];
}

export type Piece = string | Variable;

export interface PathTemplate {
  readonly path: readonly Piece[];
  readonly query: readonly (readonly [string, readonly Piece[]])[];
}

export type ParsedTemplate =
  | { readonly kind: 'template'; readonly template: PathTemplate }
  | { readonly kind: 'mistake'; readonly message: string };

/** A value that cannot stand at its place. `message` never holds the value. */
export class TemplateValueError extends Error {
  override readonly name = 'TemplateValueError';
}

const NAME = /^[A-Za-z_$][\w$-]*(?:\.[A-Za-z_$][\w$-]*)*$/;
const SEGMENT = /^(?:\*\*?|[\w.~-]+)$/;
/** What RFC 3986 allows in a path as it is, or percent-encoded; `*` alone would be a wildcard without a name. */
const LITERAL = /^(?:[\w\-.~!$&'()+,;=:@/]|%[0-9A-Fa-f]{2})*$/;
const QUERY_LITERAL = /^(?:[\w\-.~!$'()*+,;:@/?]|%[0-9A-Fa-f]{2})*$/;
const FORM = 'must be a path like "/{parent=projects/*}/things?thingId={id}"';

export function parseTemplate(text: string): ParsedTemplate {
  if (!text.startsWith('/')) return mistake(`${FORM}: it begins with "/"`);
  const pieces = piecesOf(text);
  if (typeof pieces === 'string') return mistake(pieces);
  const split = splitQuery(pieces);
  const wrong = split.path.find((piece) => typeof piece === 'string' && !isPathLiteral(piece));
  if (typeof wrong === 'string') return mistake(`has "${wrong}", which no path can hold outside { }`);
  const query = queryOf(split.query);
  if (typeof query === 'string') return mistake(query);
  return { kind: 'template', template: { path: split.path, query } };
}

function mistake(message: string): ParsedTemplate {
  return { kind: 'mistake', message };
}

/** Literals and variables in turn; a sentence where the braces are wrong. */
function piecesOf(text: string): readonly Piece[] | string {
  const pieces: Piece[] = [];
  let rest = text;
  while (rest !== '') {
    const open = rest.indexOf('{');
    const literal = open === -1 ? rest : rest.slice(0, open);
    if (literal.includes('}')) return 'has a "}" without its "{"';
    if (literal !== '') pieces.push(literal);
    if (open === -1) break;
    const close = rest.indexOf('}', open);
    if (close === -1) return 'has a "{" without its "}"';
    const variable = variableOf(rest.slice(open + 1, close));
    if (typeof variable === 'string') return variable;
    pieces.push(variable);
    rest = rest.slice(close + 1);
  }
  return pieces;
}

function variableOf(inside: string): Variable | string {
  const equals = inside.indexOf('=');
  const name = equals === -1 ? inside : inside.slice(0, equals);
  const pattern = equals === -1 ? ['*'] : inside.slice(equals + 1).split('/');
  if (!NAME.test(name)) return `has "{${inside}}": the part before "=" must be the name of an argument`;
  const isFine = pattern.every((segment) => SEGMENT.test(segment) && !isDots(segment));
  if (!isFine || pattern.slice(0, -1).includes('**')) {
    return `has "{${inside}}": after "=" come segments like projects/*/instances/*, with "**" only as the last`;
  }
  return { name, pattern };
}

function splitQuery(pieces: readonly Piece[]): { path: readonly Piece[]; query: readonly Piece[] } {
  const at = pieces.findIndex((piece) => typeof piece === 'string' && piece.includes('?'));
  const piece = pieces[at];
  if (typeof piece !== 'string') return { path: pieces, query: [] };
  const mark = piece.indexOf('?');
  const isText = (part: Piece): boolean => part !== '';
  return {
    path: [...pieces.slice(0, at), piece.slice(0, mark)].filter(isText),
    query: [piece.slice(mark + 1), ...pieces.slice(at + 1)].filter(isText),
  };
}

function isPathLiteral(literal: string): boolean {
  return LITERAL.test(literal) && !literal.split('/').some(isDots);
}

/** Every URL parser takes such a segment away, encoded or not: the request would go elsewhere. */
function isDots(segment: string): boolean {
  return /^(?:\.|%2e){1,2}$/i.test(segment);
}

function queryOf(pieces: readonly Piece[]): PathTemplate['query'] | string {
  const pairs: [string, Piece[]][] = [];
  let current: [string, Piece[]] | null = null;
  for (const piece of pieces) {
    if (typeof piece !== 'string') {
      if (!current) return 'has a variable in its query that is not the value of a name';
      current[1].push(piece);
      continue;
    }
    const [continued = '', ...next] = piece.split('&');
    const texts: string[] = current ? next : [continued, ...next];
    if (current && continued !== '') current[1].push(continued);
    for (const text of texts) {
      const equals = text.indexOf('=');
      if (text === '') continue;
      if (equals < 1) return 'has a query that is not made of name=value';
      current = [text.slice(0, equals), text.slice(equals + 1) === '' ? [] : [text.slice(equals + 1)]];
      pairs.push(current);
    }
    if (piece.endsWith('&')) current = null;
  }
  const texts = pairs.flatMap(([name, values]) => [
    name,
    ...values.filter((value) => typeof value === 'string'),
  ]);
  const wrong = texts.find((text) => !QUERY_LITERAL.test(text));
  return wrong === undefined ? pairs : `has "${wrong}", which no query can hold outside { }`;
}

export function variablesOf({ path, query }: PathTemplate): readonly Variable[] {
  return [...path, ...query.flatMap(([, pieces]) => pieces)].filter((piece) => typeof piece !== 'string');
}

/** Path and query, with what `valueOf` gives for each variable. @throws TemplateValueError */
export function expandTemplate(
  { path, query }: PathTemplate,
  valueOf: (name: string) => string,
): { readonly path: string; readonly query: string } {
  const inPath = (piece: Piece): string =>
    typeof piece === 'string' ? piece : encodeSegments(piece, valueOf(piece.name));
  const inQuery = (piece: Piece): string =>
    typeof piece === 'string' ? piece : encodeText(piece.name, valueOf(piece.name));
  return {
    path: path.map(inPath).join(''),
    query: query.map(([name, pieces]) => `${name}=${pieces.map(inQuery).join('')}`).join('&'),
  };
}

/** The text of a template whose values are not encoded: for comparing, never for a URL. @throws TemplateValueError */
export function fillText(text: string, valueOf: (name: string) => string): string {
  return text.replaceAll(/\{([^{}]*)\}/g, (_, name: string) => valueOf(name));
}

/** Slashes stand where the pattern has more than one segment; all else but the unreserved is encoded. */
function encodeSegments({ name, pattern }: Variable, value: string): string {
  const segments = pattern.length === 1 && pattern[0] === '*' ? [value] : value.split('/');
  if (!fits(segments, pattern)) {
    throw new TemplateValueError(`"${name}" does not have the form ${pattern.join('/')}`);
  }
  if (segments.some(isDots))
    throw new TemplateValueError(`"${name}" has a segment "." or "..", which no path can hold`);
  return segments.map((segment) => encodeText(name, segment)).join('/');
}

function fits(segments: readonly string[], pattern: readonly string[]): boolean {
  const isOpen = pattern.at(-1) === '**';
  const fixed = isOpen ? pattern.slice(0, -1) : pattern;
  if (isOpen ? segments.length <= fixed.length : segments.length !== fixed.length) return false;
  if (segments.join('') === '') return false;
  return fixed.every((wanted, at) => (wanted === '*' ? segments[at] !== '' : segments[at] === wanted));
}

/** RFC 3986: only the unreserved stay. */
export function encodeText(name: string, text: string): string {
  if (/\p{Surrogate}/u.test(text)) throw new TemplateValueError(`"${name}" holds half a character`);
  return encodeURIComponent(text).replaceAll(
    /[!'()*]/g,
    (char) => `%${char.charCodeAt(0).toString(16).toUpperCase()}`,
  );
}
