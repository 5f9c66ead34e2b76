// Owns reading `durable.auth`: where a server's token comes from, and what does not go together.
// Must never put a value into a mistake.

import type { AuthSettings } from '../protocols/adapter.js';
import type { GivenAuth } from './durable-settings.js';
import { type Keys, mistake, type Reading, readText } from './reading.js';

/** What else the entry says that bears on it. */
export interface BesideAuth {
  readonly isProgram: boolean;
  readonly headers: Readonly<Record<string, string>>;
}

/** Undefined where none is given, or where it is the mistake. */
export function readAuth(
  keys: Keys,
  given: GivenAuth | undefined,
  { isProgram, headers }: BesideAuth,
  reading: Reading,
): AuthSettings | undefined {
  if (given === undefined) return undefined;
  if (isProgram) {
    mistake(reading, keys, 'is for a server with a "url"; give a program its credentials in "env"');
    return undefined;
  }
  if (Object.keys(headers).some((name) => name.toLowerCase() === 'authorization')) {
    mistake(reading, keys, 'would replace the Authorization of "headers"; keep one of them');
    return undefined;
  }
  if (given.bearer !== undefined) return readBearer([...keys, 'bearer'], given.bearer, reading);
  if (given.command !== undefined) {
    const command = given.command.map((word, index) => readText([...keys, 'command', index], word, reading));
    return { kind: 'command', command, lifetimeMs: given.lifetime ?? null };
  }
  return given.oauth && readOAuth([...keys, 'oauth'], given.oauth, reading);
}

function readBearer(keys: Keys, given: string, reading: Reading): AuthSettings | undefined {
  const before = reading.mistakes.length;
  const token = readText(keys, given, reading);
  if (reading.mistakes.length > before) return undefined;
  if (!/^[\x21-\x7e]+$/.test(token)) {
    mistake(reading, keys, 'must be the token alone, without "Bearer", in visible ASCII characters');
    return undefined;
  }
  return { kind: 'bearer', token };
}

function readOAuth(keys: Keys, given: NonNullable<GivenAuth['oauth']>, reading: Reading): AuthSettings {
  const textOf = (key: keyof typeof given): string | null => {
    const text = given[key];
    if (text === undefined) return null;
    const expanded = readText([...keys, key], text, reading);
    // A variable that is set to nothing.
    if (expanded === '' && text !== '' && !reading.mistakes.some(({ path }) => path.endsWith(key)))
      mistake(reading, [...keys, key], 'is empty');
    return expanded;
  };
  const issuer = textOf('issuer') ?? '';
  if (issuer !== '' && !isIssuer(issuer))
    mistake(reading, [...keys, 'issuer'], 'must be an https:// URL (http:// only on this machine)');
  return {
    kind: 'oauth',
    clientId: textOf('clientId') ?? '',
    clientSecret: textOf('clientSecret'),
    issuer,
    scope: textOf('scope'),
    refreshToken: textOf('refreshToken'),
  };
}

/** RFC 8414 section 2: https, and nothing behind the path. */
function isIssuer(text: string): boolean {
  if (!URL.canParse(text)) return false;
  const { protocol, hostname, search, hash, username, password } = new URL(text);
  if (`${search}${hash}${username}${password}` !== '') return false;
  return (
    protocol === 'https:' ||
    (protocol === 'http:' && /^(localhost|127\.\d+\.\d+\.\d+|\[::1\])$/.test(hostname))
  );
}
