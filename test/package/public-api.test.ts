// The public API is what `public-api.md` says, to the last type that callers can reach, and the built modules give just that.

import { readFileSync, writeFileSync } from 'node:fs';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { expect, test } from 'vitest';
import { readPublicApi } from './public-api.js';

const ROOT = fileURLToPath(new URL('../../', import.meta.url));
const GOLDEN = new URL('public-api.md', import.meta.url);

const api = readPublicApi(ROOT);

test('every exported name, its kind and its types are as pinned', () => {
  if (process.env.DTC_UPDATE_API === '1') writeFileSync(GOLDEN, api.text);
  expect(api.text).toBe(readFileSync(GOLDEN, 'utf8'));
});

test.each(api.entries.filter(({ module }) => module !== null))(
  '$specifier gives the values that its types promise, and no other',
  async ({ module, names }) => {
    const given = (await import(pathToFileURL(module ?? '').href)) as Record<string, unknown>;
    const promised = names.filter(({ isValue }) => isValue).map(({ name }) => name);
    expect(Object.keys(given).toSorted()).toEqual(promised);
  },
);
