// Owns the tests of path templates: what may be written, and what becomes of a value in a path or a query.

import { describe, expect, it } from 'vitest';
import { expandTemplate, parseTemplate, variablesOf } from '../../protocols/aip-151/path-template.js';

function expand(text: string, values: Readonly<Record<string, string>>): string {
  const parsed = parseTemplate(text);
  if (parsed.kind === 'mistake') throw new Error(parsed.message);
  const { path, query } = expandTemplate(parsed.template, (name) => values[name] ?? '');
  return query === '' ? path : `${path}?${query}`;
}

describe('a template', () => {
  it.each([
    ['/things', {}, '/things'],
    ['/{id}', { id: 'a/b' }, '/a%2Fb'],
    ['/{parent=projects/*}/things', { parent: 'projects/p q' }, '/projects/p%20q/things'],
    [
      '/{name=**}:cancel',
      { name: 'operations/a+b=c==/x:y%2F' },
      '/operations/a%2Bb%3Dc%3D%3D/x%3Ay%252F:cancel',
    ],
    ['/{name=operations/**}', { name: 'operations/a//b/' }, '/operations/a//b/'],
    ['/{name=**}', { name: "*'(!)~é\u{1F600}" }, '/%2A%27%28%21%29~%C3%A9%F0%9F%98%80'],
    ['/a/{b}/c:do?x=1&id={id}&y={y}z', { b: 'B', id: 'a&b=c', y: '/' }, '/a/B/c:do?x=1&id=a%26b%3Dc&y=%2Fz'],
    ['/{backup.name=a/*}?empty=', { 'backup.name': 'a/1' }, '/a/1?empty='],
    ['/a%20b/{id}', { id: '...' }, '/a%20b/...'],
  ])('%s with %j is %s', (text, values, expected) => {
    expect(expand(text, values)).toBe(expected);
  });

  it.each([
    ['/{id}', { id: '' }],
    ['/{id}', { id: '..' }],
    ['/{id}', { id: '.' }],
    ['/{id}', { id: '%2e%2E' }],
    ['/{name=**}', { name: '' }],
    ['/{name=**}', { name: 'operations/../admin' }],
    ['/{name=**}', { name: 'operations/./x' }],
    ['/{parent=projects/*}', { parent: 'projects' }],
    ['/{parent=projects/*}', { parent: 'projects/' }],
    ['/{parent=projects/*}', { parent: 'projects/p/q' }],
    ['/{parent=projects/*}', { parent: 'folders/p' }],
    ['/{name=operations/**}', { name: 'operations' }],
    ['/{id}', { id: 'half \uD83D' }],
    ['/x?id={id}', { id: '\uDE00' }],
  ])('%s refuses %j', (text, values) => {
    expect(() => expand(text, values)).toThrow(
      /^"(?:id|name|parent)" (?:does not have the form|has a segment|holds half)/,
    );
  });

  it.each([
    ['things', 'begins with "/"'],
    ['', 'begins with "/"'],
    ['/{id', 'a "{" without its "}"'],
    ['/id}', 'a "}" without its "{"'],
    ['/{}', 'must be the name of an argument'],
    ['/{a b}', 'must be the name of an argument'],
    ['/{id=}', 'segments like'],
    ['/{id=**/x}', 'segments like'],
    ['/{id=../x}', 'segments like'],
    ['/*/x', '"/*/x"'],
    ['/a/../b', '"/a/../b"'],
    ['/a b', '"/a b"'],
    ['/a?{x}', 'not the value of a name'],
    ['/a?x', 'name=value'],
    ['/a?x=1&{y}', 'not the value of a name'],
    ['/a?x=a b', '"a b"'],
    ['/a#b', '"/a#b"'],
  ])('may not be %s', (text, why) => {
    const parsed = parseTemplate(text);
    expect(parsed).toMatchObject({ kind: 'mistake', message: expect.stringContaining(why) as string });
  });

  it('names its variables, those of the query too', () => {
    const parsed = parseTemplate('/{a=x/*}/{b.c}?d={d}');
    if (parsed.kind === 'mistake') throw new Error(parsed.message);
    expect(variablesOf(parsed.template).map(({ name }) => name)).toEqual(['a', 'b.c', 'd']);
  });
});
