// What an operator gives after --result: exact text, from wherever, bounded before it is held.

import { expect, test } from 'vitest';
import { readResultText } from '../../cli/read-result.js';

async function* bytes(...chunks: readonly (string | Uint8Array)[]): AsyncGenerator<Uint8Array> {
  for (const chunk of chunks) yield typeof chunk === 'string' ? Buffer.from(chunk) : chunk;
}

const from = (stream: AsyncIterable<Uint8Array>) => ({ openFile: () => stream, openStdin: () => stream });

test('standard input, a file and the word itself are taken as they are', async () => {
  const [first, second] = [Buffer.from('"ä"').subarray(0, 2), Buffer.from('"ä"').subarray(2)];
  expect(await readResultText('-', from(bytes(first, second)))).toBe('"ä"');
  expect(await readResultText('@some.json', from(bytes(' {"a":1.0}\n')))).toBe(' {"a":1.0}\n');
  expect(await readResultText('[12345678901234567890]')).toBe('[12345678901234567890]');
});

test('an endless stream is left as soon as it is too long', async () => {
  let given = 0;
  async function* endless(): AsyncGenerator<Uint8Array> {
    for (;;) {
      given += 100_000;
      yield Buffer.alloc(100_000, 32);
    }
  }
  await expect(readResultText('-', from(endless()))).rejects.toThrow(
    'standard input (--result -): the result is larger than 524288 bytes',
  );
  expect(given).toBe(600_000);
});

test('a byte order mark, half a character and no text at all are refused, naming where they came from', async () => {
  await expect(readResultText('@a.json', from(bytes('\uFEFF{}')))).rejects.toThrow(
    'a.json: the result is not valid JSON',
  );
  await expect(readResultText('@a.json', from(bytes(Buffer.from([0x22, 0xc3, 0x22]))))).rejects.toThrow(
    'a.json is not UTF-8 text',
  );
  await expect(readResultText('-', from(bytes()))).rejects.toThrow('not valid JSON');
});
