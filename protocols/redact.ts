// Owns keeping a server's credentials, configured or had meanwhile, out of every text of that server that people or the store may see.
// Must never touch what has to stay as it is: result bytes, ids used on the wire, the structure of a schema.

import type { JsonObject, JsonValue } from '../operation/json.js';
import type { AuthSettings, ToolServer } from './adapter.js';

/** A text from the server, without configured credentials and without halves of characters. Before any clipping. */
export type Redact = (text: string) => string;

/** Shorter values occur in ordinary words; nobody could read what is left. */
const SHORTEST_SECRET_CHARS = 6;
const REDACTED = '[redacted]';

/** Tokens that were had once and may still be quoted; the oldest are spent for long. */
const REMEMBERED_TOKENS = 64;

interface Redactor {
  readonly redact: Redact;
  readonly tokens: string[];
  current: Redact;
}

const redactors = new WeakMap<ToolServer, Redactor>();

/** One per server: every room that reads its words uses the same, and it learns new tokens. */
export function redactorOf(server: ToolServer): Redact {
  return redactorEntry(server).redact;
}

/** Before it is used: the reply to its first use may quote it. */
export function noteSecret(server: ToolServer, secret: string): void {
  const entry = redactorEntry(server);
  if (secret === '' || entry.tokens.includes(secret)) return;
  entry.tokens.push(secret);
  if (entry.tokens.length > REMEMBERED_TOKENS) entry.tokens.shift();
  entry.current = redactorFor([...secretsOf(server), ...entry.tokens]);
}

function redactorEntry(server: ToolServer): Redactor {
  const known = redactors.get(server);
  if (known) return known;
  const entry: Redactor = {
    redact: (text) => entry.current(text),
    tokens: [],
    current: redactorFor(secretsOf(server)),
  };
  redactors.set(server, entry);
  return entry;
}

function redactorFor(secrets: readonly string[]): Redact {
  const forms = new Set(secrets.flatMap(formsOf).filter((form) => form.length >= SHORTEST_SECRET_CHARS));
  // The longest first: of `Bearer token` nothing may be left because `token` was found before.
  const pattern = [...forms]
    .sort((a, b) => b.length - a.length)
    .map(escapeForPattern)
    .join('|');
  if (pattern === '') return wellFormed;
  // Case is ignored: media types and header names come back in lower case.
  const found = new RegExp(pattern, 'gi');
  return (text) => wellFormed(text.replaceAll(found, REDACTED));
}

/** Canonical JSON (RFC 8785) knows no lone surrogate: such a text could never get into a digest or a receipt. */
function wellFormed(text: string): string {
  return text.replaceAll(/\p{Surrogate}/gu, '\u{FFFD}');
}

function secretsOf(server: ToolServer): readonly string[] {
  const ofMethods = Object.values(server.methods ?? {}).flatMap(({ headers }) => Object.values(headers));
  const values = [...Object.values(server.headers), ...ofMethods].flatMap(partsOfHeader);
  return [...values, ...partsOfUrl(server.url), ...secretsOfAuth(server.auth), ...(server.secrets ?? [])];
}

/** As RFC 6749 (section 2.3.1) has them inside Basic authentication. */
export function formEncodedPair(clientId: string, clientSecret: string): string {
  return [clientId, clientSecret]
    .map((text) => new URLSearchParams({ '': text }).toString().slice(1))
    .join(':');
}

function secretsOfAuth(auth: AuthSettings | undefined): readonly string[] {
  switch (auth?.kind) {
    case 'bearer':
      return [auth.token];
    case 'oauth': {
      const { clientId, clientSecret, refreshToken } = auth;
      // Together they are what Basic authentication encodes.
      const pair =
        clientSecret === null
          ? []
          : [clientSecret, `${clientId}:${clientSecret}`, formEncodedPair(clientId, clientSecret)];
      return refreshToken === null ? pair : [...pair, refreshToken];
    }
    default:
      return [];
  }
}

/** The value, what follows its scheme, decoded Basic credentials, and the values of `name=value` pairs. */
function partsOfHeader(value: string): readonly string[] {
  const whole = value.trim();
  const token = /^\S+\s+(.+)$/s.exec(whole)?.[1];
  const pairs = whole.split(/[;,]\s*/).flatMap((pair) => /^[^=\s]+=(.+)$/s.exec(pair)?.[1] ?? []);
  const basic = /^basic\s+(.+)$/i.exec(whole)?.[1];
  return [value, whole, ...(token === undefined ? [] : [token, ...token.split(/\s+/)]), ...pairs].concat(
    basic === undefined ? [] : credentialsOf(Buffer.from(basic, 'base64').toString('utf8')),
  );
}

function credentialsOf(userAndPassword: string): readonly string[] {
  const colon = userAndPassword.indexOf(':');
  return colon === -1 ? [userAndPassword] : [userAndPassword, userAndPassword.slice(colon + 1)];
}

function partsOfUrl(text: string): readonly string[] {
  if (!URL.canParse(text)) return [];
  const url = new URL(text);
  const raw = url.search
    .slice(1)
    .split('&')
    .map((pair) => pair.slice(pair.indexOf('=') + 1));
  const user = decoded(url.username);
  const password = decoded(url.password);
  const userinfo = user === '' && password === '' ? [] : [user, password, `${user}:${password}`];
  return [...url.searchParams.values(), ...raw, url.username, url.password, ...userinfo];
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

/** As it is, and as servers quote it: inside a URL, inside JSON, in Base64. */
function formsOf(secret: string): readonly string[] {
  if (secret.length < SHORTEST_SECRET_CHARS) return [];
  const whole = wellFormed(secret);
  const base64 = Buffer.from(whole).toString('base64');
  return [
    secret,
    whole,
    encodeURIComponent(whole),
    new URLSearchParams({ '': whole }).toString().slice(1),
    JSON.stringify(whole).slice(1, -1),
    base64,
    base64.replace(/=+$/, ''),
    Buffer.from(whole).toString('base64url'),
  ];
}

function escapeForPattern(text: string): string {
  return text.replaceAll(/[.*+?^${}()|[\]\\/-]/g, String.raw`\$&`);
}

/** Members of a JSON schema that are only read by people. The rest decides what a valid reply is, and stays. */
const TEXTS: readonly string[] = ['title', 'description', 'enumNames', '$comment'];

/** A schema without credentials in what people read of it. */
export function withCleanTexts(schema: JsonObject, redact: Redact): JsonObject {
  return Object.fromEntries(
    Object.entries(schema).map(([name, value]) => [name, cleanMember(name, value, redact)]),
  );
}

function cleanMember(name: string, value: JsonValue, redact: Redact): JsonValue {
  if (typeof value === 'string') return TEXTS.includes(name) ? redact(value) : value;
  // Elements of a list are what their list is: `enumNames` holds texts, `oneOf` schemas, `enum` values.
  if (Array.isArray(value)) return value.map((element: JsonValue) => cleanMember(name, element, redact));
  return typeof value === 'object' && value !== null ? withCleanTexts(value as JsonObject, redact) : value;
}
