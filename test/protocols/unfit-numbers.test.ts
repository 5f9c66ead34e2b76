// Owns what becomes of numbers beyond a double and of halves of characters, which no digest can be made of.
// Must never demand that the bytes of a tool's result are touched for them.

import type http from 'node:http';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { ToolAdapter, WireQuestion } from '../../protocols/adapter.js';
import { createProtocolRegistry } from '../../protocols/registry.js';
import {
  NO_HOOKS,
  openStream,
  ScriptedServer,
  type SeenRequest,
  sendResult,
  SESSION,
  taskJson,
  toolCall,
  toolServer,
} from './scripted-server.js';

const REFERENCE = { remoteId: 'task-1', locator: SESSION };
const UNFIT = [
  ['a number beyond a double', '1e999'],
  ['half a character', String.raw`"\ud800"`],
] as const;

let scripted: ScriptedServer;
let adapter: ToolAdapter;
beforeEach(async () => {
  scripted = await ScriptedServer.start();
  adapter = createProtocolRegistry().adapter('mcp/2025-11-25');
});
afterEach(() => scripted.stop());

const server = () => toolServer(scripted.url);

/** As text, because JSON.stringify writes null for what JSON.parse reads as Infinity. */
function sendText(response: http.ServerResponse, seen: SeenRequest, result: string): void {
  response
    .writeHead(200, { 'content-type': 'application/json' })
    .end(`{"jsonrpc":"2.0","id":${JSON.stringify(seen.body.id)},"result":${result}}`);
}

describe('an unfit value', () => {
  it.each(UNFIT)('in a descriptor (%s) makes the tool unsupported, with a sentence', async (_, value) => {
    const hello = {
      protocolVersion: '2025-11-25',
      capabilities: { tools: {} },
      serverInfo: { name: 's', version: '1' },
    };
    const tool = `{"name":"report","inputSchema":{"type":"object","properties":{"n":{"default":${value}}}}}`;
    scripted.script = (seen, response) => {
      if (seen.body.method === 'initialize') return sendResult(response, seen, hello);
      if (seen.body.method === 'tools/list') return sendText(response, seen, `{"tools":[${tool}]}`);
      return void response.writeHead(202).end();
    };
    expect(await createProtocolRegistry().negotiate(server(), 'report')).toEqual({
      kind: 'unsupported',
      message: expect.stringContaining('such as 1e999'),
    });
  });

  describe.each(UNFIT)('in a question (%s)', (_, value) => {
    const elicitation = (id: number, maximum: string): string =>
      `data: {"jsonrpc":"2.0","id":${id},"method":"elicitation/create","params":{"message":"How many?",` +
      `"requestedSchema":{"type":"object","properties":{"n":{"type":"number","maximum":${maximum}}}}}}\n\n`;
    async function pickUp(events: string[], picked: WireQuestion[]): Promise<void> {
      scripted.script = (seen, response) => {
        if (seen.body.method === undefined) return void response.writeHead(202).end();
        openStream(response);
        response.write(events.join(''));
        if (events.length === 1)
          response.end(`data: {"jsonrpc":"2.0","id":"${seen.body.id}","result":{"content":[]}}\n\n`);
      };
      await adapter.pickUpQuestions(server(), REFERENCE, { anchor: null, wireKeys: [] }, async (question) => {
        picked.push(question);
      });
    }

    it('is a violation: the question is refused and not taken', async () => {
      const picked: WireQuestion[] = [];
      await expect(pickUp([elicitation(0, value)], picked)).rejects.toMatchObject({
        kind: 'ProtocolViolation',
      });
      expect(picked).toEqual([]);
      await scripted.until(() => scripted.seen.some((seen) => seen.body.error !== undefined));
    });

    it('keeps no other question from being asked', async () => {
      const picked: WireQuestion[] = [];
      await pickUp([elicitation(0, value), elicitation(1, '7')], picked);
      expect(picked.map((question) => question.wire['jsonRpcId'])).toEqual([1]);
    });
  });

  it('as a poll interval says nothing', async () => {
    const task = JSON.stringify(taskJson('working')).replace('1500', '1e999');
    scripted.script = (seen, response) => sendText(response, seen, task);
    expect(await adapter.observe(server(), REFERENCE)).toMatchObject({
      intervalMs: null,
      meaning: 'working',
    });
  });

  it('in an id makes a task that nobody could ask for: Ambiguous', async () => {
    const task = JSON.stringify(taskJson('working')).replace('"task-1"', String.raw`"task-\ud800"`);
    scripted.script = (seen, response) => sendText(response, seen, `{"task":${task}}`);
    await expect(adapter.submit(toolCall(server()), SESSION, NO_HOOKS)).rejects.toMatchObject({
      kind: 'Ambiguous',
    });
  });

  it.each(UNFIT)('in a result (%s) passes byte for byte', async (_, value) => {
    const result = `{"content":[],"structuredContent":{"n": ${value}}}`;
    scripted.script = (seen, response) => sendText(response, seen, result);
    const fetched = await adapter.fetchResult(server(), REFERENCE);
    const bytes = fetched.kind === 'result' ? fetched.result.bytes : new Uint8Array();
    expect(Buffer.from(bytes).toString()).toBe(result);
  });
});
