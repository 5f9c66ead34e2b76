// Owns the proof of what the doctor says of servers: whether the credential can be had, whether the program answers.
// Must never leave a program behind.

import { createRequire } from 'node:module';
import { describe, expect, test } from 'vitest';
import { checkServers } from '../../cli/doctor/check-servers.js';
import type { Finding } from '../../cli/doctor/finding.js';
import { parseToolServers } from '../../worker/tool-servers.js';
import { startEverythingServer } from '../protocols/everything-server.js';
import { startAuthorizationServer } from '../servers/oauth/start-authorization-server.js';
import { startGate } from '../servers/oauth/start-gate.js';

const EVERYTHING = createRequire(import.meta.url).resolve(
  '@modelcontextprotocol/server-everything/dist/index.js',
);

function findingsOf(entry: object, env: Record<string, string> = {}): Promise<readonly Finding[]> {
  return checkServers(parseToolServers({ mcpServers: { tools: entry } }, env));
}

describe('servers', () => {
  test('a program is started for the look, and ended', async () => {
    const program = { command: process.execPath, args: [EVERYTHING, 'stdio'] };
    expect(await findingsOf(program)).toMatchObject([
      {
        kind: 'well',
        what: 'server tools',
        says: expect.stringMatching(/^MCP 2025-11-25, tasks, \d+ tools$/),
      },
    ]);
  });

  test('a program that cannot be started is named with what to mend', async () => {
    expect(await findingsOf({ command: 'no-such-program-here' })).toEqual([
      {
        kind: 'wrong',
        what: 'server tools',
        says: 'tools: initialize: the program of tools could not be started (ENOENT); check "command" and "cwd"',
        mend: 'mend "command", "args" and "env" of this server',
      },
    ]);
  });

  test('a credential that cannot be had is the one finding, and the server is not asked', async () => {
    const command = [process.execPath, '-e', 'process.exit(2)'];
    expect(await findingsOf({ url: 'http://127.0.0.1:9/', durable: { auth: { command } } })).toEqual([
      {
        kind: 'wrong',
        what: 'server tools credential',
        says: 'the program of "auth.command" of tools ended with exit code 2; run it by hand to see why',
        mend: 'mend "durable.auth" of this server',
      },
    ]);
  });

  test('a credential that was had is told with its source and how long it is good, never itself', async () => {
    const everything = await startEverythingServer();
    const authority = await startAuthorizationServer({ clientSecret: 'doctor-secret', tokenSeconds: 100 });
    const gate = await startGate(everything.url, authority);
    const oauth = { clientId: 'worker', clientSecret: '${SECRET}', issuer: authority.issuer, scope: 'tools' };
    const findings = await findingsOf(
      { url: gate.url, durable: { auth: { oauth } } },
      { SECRET: 'doctor-secret' },
    );
    expect(findings).toMatchObject([
      {
        kind: 'well',
        what: 'server tools credential',
        says: expect.stringMatching(/^a token from http:\/\/127\.0\.0\.1:\d+, good for (9\d|100) s$/),
      },
      { kind: 'well', what: 'server tools' },
    ]);
    expect(JSON.stringify(findings)).not.toContain(gate.bearers[0]);
    await gate.stop();
    await authority.stop();
    await everything.stop();
  });
});
