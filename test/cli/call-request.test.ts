// Owns the proof of what `--args`, `--answer` and durations accept, and what they answer to anything else.
// Must never read the real standard input.

import { expect, test } from 'vitest';
import { type ArgumentSources, readAnswer, readArguments, readDurationMs } from '../../cli/call-request.js';
import { CommandError } from '../../cli/exit-codes.js';

const sources: ArgumentSources = {
  readFile: (file) =>
    file === 'args.json'
      ? Promise.resolve('{"from":"file"}')
      : Promise.reject(Object.assign(new Error('no such file'), { code: 'ENOENT' })),
  readStdin: () => Promise.resolve('{"from":"stdin"}'),
};

test('arguments come as JSON, from a file, or from standard input', async () => {
  expect(await readArguments('{"topic":"x"}', sources)).toEqual({ topic: 'x' });
  expect(await readArguments('@args.json', sources)).toEqual({ from: 'file' });
  expect(await readArguments('-', sources)).toEqual({ from: 'stdin' });
});

test.each(['[1]', '"a"', '1', 'null', 'true'])(
  'arguments that are %s and no object are refused',
  async (given) => {
    const refusal = readArguments(given, sources);
    await expect(refusal).rejects.toThrow(/must be a JSON object/);
    await expect(refusal).rejects.toMatchObject({ name: 'CommandError', exitCode: 2 });
  },
);

test('arguments that are no JSON are refused without being repeated', async () => {
  const error: unknown = await readArguments('{"password":"hunter2",}', sources).catch(
    (thrown: unknown) => thrown,
  );
  expect(CommandError.isInstance(error)).toBe(true);
  expect((error as Error).message).toMatch(/--args is not valid JSON/);
  expect((error as Error).message).not.toContain('hunter2');
});

test('a file of arguments that cannot be read is named with the reason', async () => {
  await expect(readArguments('@absent.json', sources)).rejects.toThrow(
    '--args @absent.json: the file cannot be read (ENOENT)',
  );
});

test('an answer is a reply, an accepted link, or a refusal', () => {
  expect(readAnswer('{"interpretation":"snake"}')).toEqual({
    action: 'accept',
    content: { interpretation: 'snake' },
  });
  expect(readAnswer('true')).toEqual({ action: 'accept', content: null });
  expect(readAnswer('false')).toEqual({ action: 'decline', content: null });
});

test.each(['"snake"', '1', 'null', '[]', '{'])('an answer that is %s is a usage error', (given) => {
  expect(() => readAnswer(given)).toThrow(CommandError);
});

test('durations take a unit, or whole milliseconds', () => {
  expect(readDurationMs('--timeout', '2s')).toBe(2_000);
  expect(readDurationMs('--timeout', '1h')).toBe(3_600_000);
  expect(readDurationMs('--timeout', '1500')).toBe(1_500);
});

test.each(['', '0', '-1s', '5x', '1.5h', 'soon'])(
  'the duration "%s" is refused with the flag\'s name',
  (given) => {
    expect(() => readDurationMs('--wait-budget', given)).toThrow(/--wait-budget must be a duration/);
  },
);
