/** Owns: our one key in `tool-servers.json`: what it may say, and the words for what it may not. */
import { describe, expect, it } from 'vitest';
import { type ConfiguredServer, parseToolServers, policyOf } from '../../worker/tool-servers.js';
import { refusal } from './refusal.js';

const URL = 'https://tools.example/mcp';
const DURATIONS =
  'must be a duration: "500ms", "30s", "10m", "2h", "1d" or a whole number of ms; more than 0, at most "365d"';

function parse(entry: unknown): ConfiguredServer {
  const { servers } = parseToolServers({ mcpServers: { search: entry } }, {});
  const configured = servers.get('search');
  if (!configured) throw new Error('no server');
  return configured;
}

describe('the settings under "durable"', () => {
  it('are read in full', () => {
    const durable = {
      protocol: 'mcp/2025-11-25',
      maxPollsPerSecond: 0.5,
      trustAnnotations: true,
      tools: {
        find: {
          waitBudget: '2h',
          synchronousBound: 1_500,
          submission: { policy: 'key-argument', argument: 'requestId' },
          sideEffects: 'none',
          onUnresolved: { closeAfter: '1d' },
        },
        book: { submission: { policy: 'key-meta', key: 'example/key' }, onUnresolved: 'hold' },
        order: {
          submission: {
            policy: 'lookup-tool',
            argument: 'clientRef',
            lookUp: {
              tool: 'find_order',
              argument: 'ref',
              id: '/structuredContent/a~1b',
              provesAbsence: true,
              settleAfter: '2m',
            },
          },
        },
        send: {
          submission: {
            policy: 'lookup-tool',
            key: 'example/key',
            lookUp: { tool: 'find', argument: 'ref', id: '/id' },
          },
        },
      },
    };
    const { server, tools } = parse({ url: URL, durable });
    expect(server).toMatchObject({
      protocol: 'mcp/2025-11-25',
      maxPollsPerSecond: 0.5,
      trustAnnotations: true,
    });
    const plain = {
      waitBudgetMs: null,
      synchronousBoundMs: null,
      sideEffects: 'unknown',
      onUnresolved: { kind: 'hold' },
    };
    expect(tools).toEqual({
      find: {
        waitBudgetMs: 7_200_000,
        synchronousBoundMs: 1_500,
        submission: { policy: 'key-argument', keyName: 'requestId' },
        sideEffects: 'none',
        onUnresolved: { kind: 'closeAfter', afterMs: 86_400_000 },
      },
      book: {
        waitBudgetMs: null,
        synchronousBoundMs: null,
        submission: { policy: 'key-meta', keyName: 'example/key' },
        sideEffects: 'unknown',
        onUnresolved: { kind: 'hold' },
      },
      order: {
        ...plain,
        submission: {
          policy: 'lookup-tool',
          keyName: 'clientRef',
          lookUp: {
            keyPlace: 'argument',
            tool: 'find_order',
            argument: 'ref',
            idPointer: '/structuredContent/a~1b',
            provesAbsence: true,
            settleAfterMs: 120_000,
          },
        },
      },
      send: {
        ...plain,
        submission: {
          policy: 'lookup-tool',
          keyName: 'example/key',
          lookUp: {
            keyPlace: 'meta',
            tool: 'find',
            argument: 'ref',
            idPointer: '/id',
            provesAbsence: false,
            settleAfterMs: 30_000,
          },
        },
      },
    });
  });

  const AT = 'mcpServers.search.durable';
  const TOOL_KEYS =
    '"waitBudget", "synchronousBound", "maxResultBytes", "sideEffects", "onUnresolved", "descriptor", "submission" or "job"';
  const SERVER_KEYS =
    '"protocol", "auth", "maxPollsPerSecond", "maxResultBytes", "trustAnnotations" or "tools"';
  const BYTES = 'must be a whole number of bytes from 1024 to 268435456';
  const POLICIES =
    '"key-argument", "key-meta", "lookup-tool", "session-list", "repeatable" or "at-most-once"';
  const found = (lookUp: object, more: object = { argument: 'k' }): unknown =>
    tool({
      submission: {
        policy: 'lookup-tool',
        ...more,
        lookUp: { tool: 'find', argument: 'a', id: '/id', ...lookUp },
      },
    });
  const tool = (settings: unknown): unknown => ({ tools: { find: settings } });
  it.each([
    ['a wrong kind', [], AT, `must be an object with the keys ${SERVER_KEYS}`],
    [
      'an unknown key',
      { maxPollPerSecond: 1 },
      AT,
      `unknown key "maxPollPerSecond" (nearest: "maxPollsPerSecond"); allowed: ${SERVER_KEYS}`,
    ],
    [
      'an unknown protocol',
      { protocol: 'mcp' },
      `${AT}.protocol`,
      'must be "auto", "mcp/2025-11-25", "mcp/2026-07-28", "mcp/job-tools" or "synchronous"',
    ],
    [
      'two ways to a token',
      { auth: { bearer: 't', command: ['c'] } },
      `${AT}.auth`,
      'must have exactly one of "bearer", "command" and "oauth"',
    ],
    [
      'no way to a token',
      { auth: {} },
      `${AT}.auth`,
      'must have exactly one of "bearer", "command" and "oauth"',
    ],
    [
      'a misspelt way to a token',
      { auth: { baerer: 't' } },
      `${AT}.auth`,
      'unknown key "baerer" (nearest: "bearer"); allowed: "bearer", "command", "lifetime" or "oauth"',
    ],
    [
      'a command as one text',
      { auth: { command: 'print-token --now' } },
      `${AT}.auth.command`,
      'must be a list of strings: the program that prints the token, and its arguments',
    ],
    [
      'a lifetime of a token that says it itself',
      { auth: { bearer: 't', lifetime: '5m' } },
      `${AT}.auth`,
      '"lifetime" goes with "command" only: other tokens say themselves how long they are good for',
    ],
    [
      'OAuth without an issuer',
      { auth: { oauth: { clientId: 'c', clientSecret: 's' } } },
      `${AT}.auth.oauth.issuer`,
      'must be the URL of the authorization server; its credentials are shown to no other',
    ],
    [
      'OAuth without a grant',
      { auth: { oauth: { clientId: 'c', issuer: 'https://a.example' } } },
      `${AT}.auth.oauth`,
      'needs "clientSecret" (client credentials) or "refreshToken"',
    ],
    [
      'an issuer without TLS',
      { auth: { oauth: { clientId: 'c', clientSecret: 's', issuer: 'http://a.example' } } },
      `${AT}.auth.oauth.issuer`,
      'must be an https:// URL (http:// only on this machine)',
    ],
    [
      'a bearer with its scheme',
      { auth: { bearer: 'Bearer abc' } },
      `${AT}.auth.bearer`,
      'must be the token alone, without "Bearer", in visible ASCII characters',
    ],
    ['a rate of nothing', { maxPollsPerSecond: 0 }, `${AT}.maxPollsPerSecond`, 'must be a number above 0'],
    ['a rate as text', { maxPollsPerSecond: '1' }, `${AT}.maxPollsPerSecond`, 'must be a number above 0'],
    ['trust as text', { trustAnnotations: 'yes' }, `${AT}.trustAnnotations`, 'must be true or false'],
    ['a list of tools', { tools: ['find'] }, `${AT}.tools`, 'must be an object with one key per tool name'],
    [
      'an unknown key of a tool',
      tool({ waitBugdet: '1s' }),
      `${AT}.tools.find`,
      `unknown key "waitBugdet" (nearest: "waitBudget"); allowed: ${TOOL_KEYS}`,
    ],
    ['a duration without unit', tool({ waitBudget: '10' }), `${AT}.tools.find.waitBudget`, DURATIONS],
    [
      'a duration of nothing',
      tool({ synchronousBound: '0s' }),
      `${AT}.tools.find.synchronousBound`,
      DURATIONS,
    ],
    [
      'a side effect',
      tool({ sideEffects: 'some' }),
      `${AT}.tools.find.sideEffects`,
      'must be "none" or "unknown"',
    ],
    [
      'an unknown policy',
      tool({ submission: { policy: 'always' } }),
      `${AT}.tools.find.submission.policy`,
      `must be an object whose "policy" is ${POLICIES}`,
    ],
    [
      'a bare policy',
      tool({ submission: 'at-most-once' }),
      `${AT}.tools.find.submission`,
      `must be an object whose "policy" is ${POLICIES}`,
    ],
    [
      'key-argument without the argument',
      tool({ submission: { policy: 'key-argument' } }),
      `${AT}.tools.find.submission.argument`,
      'must be the name of the argument that takes the key',
    ],
    [
      'key-meta with an empty key',
      tool({ submission: { policy: 'key-meta', key: '' } }),
      `${AT}.tools.find.submission.key`,
      'must be the _meta key that takes the key',
    ],
    [
      "another policy's key",
      tool({ submission: { policy: 'key-meta', key: 'k', argument: 'a' } }),
      `${AT}.tools.find.submission`,
      'unknown key "argument" (nearest: "key"); allowed: "policy" or "key"',
    ],
    ...(
      [
        ['id', 'jobId'],
        ['id', ''],
        ['id', '/a~2'],
        ['id', 7],
      ] as const
    ).map(([key, value]) => [
      `a look-up whose ${key} is ${JSON.stringify(value)}`,
      found({ [key]: value }),
      `${AT}.tools.find.submission.lookUp.${key}`,
      'must be a JSON pointer to the id in the tool\'s answer, e.g. "/structuredContent/jobId", or "/jobId" in the JSON of its first text',
    ]),
    [
      'a look-up that settles after nothing',
      found({ settleAfter: '0s' }),
      `${AT}.tools.find.submission.lookUp.settleAfter`,
      DURATIONS,
    ],
    [
      'a proof as text',
      found({ provesAbsence: 'yes' }),
      `${AT}.tools.find.submission.lookUp.provesAbsence`,
      'must be true or false',
    ],
    [
      'a look-up without a tool',
      found({ tool: '' }),
      `${AT}.tools.find.submission.lookUp.tool`,
      'must be the name of the tool that looks work up by its key',
    ],
    ...[{}, { argument: 'a', key: 'k' }].map((more) => [
      `lookup-tool with ${Object.keys(more).length} places for the key`,
      found({}, more),
      `${AT}.tools.find.submission`,
      'must have either "argument" or "key" to carry the key of the submission',
    ]),
    [
      'a stranger in a look-up',
      found({ provesAbsense: true }),
      `${AT}.tools.find.submission.lookUp`,
      'unknown key "provesAbsense" (nearest: "provesAbsence"); allowed: "tool", "argument", "id", "provesAbsence" or "settleAfter"',
    ],
    [
      'repeatable on nothing',
      tool({ submission: { policy: 'repeatable' } }),
      `${AT}.tools.find.submission.policy`,
      '"repeatable" needs "sideEffects": "none" on the tool, or "trustAnnotations": true on the server',
    ],
    [
      'an unknown standing decision',
      tool({ onUnresolved: 'close' }),
      `${AT}.tools.find.onUnresolved`,
      'must be "hold" or {"closeAfter": duration}',
    ],
    [
      'a bad time to close after',
      tool({ onUnresolved: { closeAfter: 'soon' } }),
      `${AT}.tools.find.onUnresolved.closeAfter`,
      DURATIONS,
    ],
    [
      'a stranger beside closeAfter',
      tool({ onUnresolved: { closeAfter: '1d', til: 1 } }),
      `${AT}.tools.find.onUnresolved`,
      'unknown key "til" (nearest: "closeAfter"); allowed: "closeAfter"',
    ],
    ['a size that is a text', { maxResultBytes: '40MB' }, `${AT}.maxResultBytes`, BYTES],
    [
      'a descriptor that is no digest',
      tool({ descriptor: 'latest' }),
      `${AT}.tools.find.descriptor`,
      "must be the SHA-256 of the tool's descriptor as 64 hex digits (dtc doctor shows it)",
    ],
    ['a size that nothing fits into', { maxResultBytes: 12 }, `${AT}.maxResultBytes`, BYTES],
    [
      'a size of a tool that no store takes',
      tool({ maxResultBytes: 268_435_457 }),
      `${AT}.tools.find.maxResultBytes`,
      BYTES,
    ],
  ])('refuse %s, and say what is allowed', (_, durable, path, message) => {
    const error = refusal({ mcpServers: { search: { url: URL, durable } } });
    expect(error.mistakes).toContainEqual({ path, message });
    expect(error.path).toBe(path);
  });

  it('allow repeatable on a server whose annotations are trusted', () => {
    const durable = { trustAnnotations: true, tools: { find: { submission: { policy: 'repeatable' } } } };
    expect(parse({ url: URL, durable }).tools['find']?.submission?.policy).toBe('repeatable');
  });

  it('have one mistake per line where there are several', () => {
    const durable = { protocol: 'x', tools: { 'a b': { waitBudget: 0 } } };
    expect(refusal({ mcpServers: { search: { url: URL, durable } } }).message).toBe(
      'mcpServers.search.durable.protocol: must be "auto", "mcp/2025-11-25", "mcp/2026-07-28", "mcp/job-tools" or "synchronous"\n' +
        `mcpServers.search.durable.tools["a b"].waitBudget: ${DURATIONS}`,
    );
  });
});

it("the largest result is the tool's, else the server's, else nobody's word", () => {
  const durable = { maxResultBytes: 5_000, tools: { find: { maxResultBytes: 9_000 }, book: {} } };
  const configured = parse({ url: URL, durable });
  const sizes = ['find', 'book', 'other'].map((tool) => policyOf(configured, tool).maxResultBytes);
  expect(sizes).toEqual([9_000, 5_000, 5_000]);
  // Absent, not a number: an operation that was opened before there was the setting looks the same.
  expect('maxResultBytes' in policyOf(parse({ url: URL }), 'find')).toBe(false);
});
