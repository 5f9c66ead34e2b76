// Owns the reading of JSON pointers (RFC 6901): `/a~1b/0` names the members "a/b" and "0".
// Must never follow one: what a missing member means is the reader's business.

const FORM = /^(?:\/(?:[^~/]|~[01])*)+$/;

/** False for the empty pointer too, which names the whole document. */
export function isJsonPointer(text: string): boolean {
  return FORM.test(text);
}

export function pointerTokens(pointer: string): readonly string[] {
  return pointer
    .split('/')
    .slice(1)
    .map((token) => token.replaceAll('~1', '/').replaceAll('~0', '~'));
}
