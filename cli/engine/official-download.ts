/**
 * Owns: the download that Temporal itself offers, done the way @temporalio/testing does it: ask temporal.download
 * for the archive of this platform, fetch it, take one file out. Must never hang where that host is blocked.
 *
 * The service publishes no digest next to its answer, so this route trusts TLS and the vendor; the exact version is
 * still asked for, and checked by the caller before use.
 */
import { createWriteStream } from 'node:fs';
import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { EngineError, lastLines } from './engine-error.js';
import { runProgram } from './run-program.js';

export const OFFICIAL_DOWNLOAD_URL = 'https://temporal.download';

/** Short: a firewall that drops packets must cost seconds, since the next source is tried after it. */
const INFO_LIMIT_MS = 5_000;
const ARCHIVE_LIMIT_MS = 180_000;
const EXTRACT_LIMIT_MS = 60_000;

const PLATFORMS: Readonly<Record<string, string>> = { linux: 'linux', darwin: 'darwin', win32: 'windows' };
const ARCHES: Readonly<Record<string, string>> = { x64: 'amd64', arm64: 'arm64' };

export interface OfficialDownload {
  readonly version: string;
  readonly platform: string;
  readonly arch: string;
  /** Empty, ours alone. */
  readonly intoDir: string;
  readonly baseUrl: string;
  readonly env: NodeJS.ProcessEnv;
}

/**
 * Returns the path of the extracted binary; nothing of it has been run yet.
 *
 * @throws EngineError `TEMPORAL_DOWNLOAD_FAILED` within 5 s when the host does not answer.
 */
export async function downloadOfficial(request: OfficialDownload): Promise<string> {
  const platform = PLATFORMS[request.platform];
  const arch = ARCHES[request.arch];
  if (platform === undefined || arch === undefined) {
    throw new EngineError('TEMPORAL_DOWNLOAD_FAILED', `no build for ${request.platform}-${request.arch}`);
  }
  try {
    const query = new URLSearchParams({ arch, platform, format: 'tar.gz' });
    const infoUrl = `${request.baseUrl}/cli/v${request.version}?${query.toString()}`;
    const info = await fetchOk(infoUrl, INFO_LIMIT_MS);
    const { archiveUrl, fileToExtract } = readInfo(await info.json());
    const archive = join(request.intoDir, 'temporal.tar.gz');
    const { body } = await fetchOk(archiveUrl, ARCHIVE_LIMIT_MS);
    if (body === null) throw new Error('empty archive');
    await pipeline(Readable.fromWeb(body), createWriteStream(archive));
    return await extract(archive, fileToExtract, request);
  } catch (error) {
    if (EngineError.isInstance(error)) throw error;
    throw new EngineError('TEMPORAL_DOWNLOAD_FAILED', reasonOf(error), { cause: error });
  }
}

async function extract(archive: string, file: string, request: OfficialDownload): Promise<string> {
  const folder = join(request.intoDir, 'official');
  await mkdir(folder);
  const tar = await runProgram('tar', ['-xzf', archive, '-C', folder, file], {
    env: request.env,
    timeoutMs: EXTRACT_LIMIT_MS,
  });
  if (tar.ok) return join(folder, file);
  throw new EngineError('TEMPORAL_DOWNLOAD_FAILED', `tar: ${lastLines(tar.output, 1)}`);
}

async function fetchOk(url: string, limitMs: number): Promise<Response> {
  const response = await fetch(url, { signal: AbortSignal.timeout(limitMs) });
  if (!response.ok) throw new Error(`HTTP ${response.status}`);
  return response;
}

function readInfo(info: unknown): { archiveUrl: string; fileToExtract: string } {
  const fields = (typeof info === 'object' && info !== null ? info : {}) as Record<string, unknown>;
  const { archiveUrl, fileToExtract } = fields;
  // A plain file name only: the answer must not choose where we write.
  if (
    typeof archiveUrl !== 'string' ||
    typeof fileToExtract !== 'string' ||
    !/^[\w.-]+$/.test(fileToExtract)
  ) {
    throw new Error('the answer names no archive');
  }
  return { archiveUrl, fileToExtract };
}

function reasonOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  // fetch says only "fetch failed"; the reason is one level down.
  const cause = error.cause as { code?: unknown; message?: unknown } | undefined;
  for (const reason of [cause?.code, cause?.message]) if (typeof reason === 'string') return reason;
  return error.message;
}
