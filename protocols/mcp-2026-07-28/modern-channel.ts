// Owns one request of MCP 2026-07-28: what it says of itself in `_meta` and headers, instead of a session.
// Must never resume a broken stream (the request in flight is lost with it), nor answer a request of the server
// on a stream of its own: this revision knows none, and no client may send a response.

import type { JsonObject } from '../../operation/json.js';
import type { ToolServer } from '../adapter.js';
import type { RequestOptions, RpcChannel } from '../mcp/channel.js';
import { openChannel } from '../mcp/open-channel.js';
import type { RpcOutcome } from '../mcp/rpc-outcome.js';
import type { Redact } from '../redact.js';
import { type AnswersTaken, PROTOCOL_VERSION, requestHeaders, withRequestMeta } from './encode.js';

export class ModernChannel {
  readonly redact: Redact;
  private readonly channel: RpcChannel;
  private readonly taken: AnswersTaken;

  constructor(server: ToolServer, taken: AnswersTaken = 'tasks') {
    this.taken = taken;
    this.channel = openChannel(server, { sessionId: null, protocolVersion: PROTOCOL_VERSION });
    this.redact = this.channel.redact;
  }

  request(method: string, params: JsonObject, options: RequestOptions): Promise<RpcOutcome> {
    return this.channel.request(method, withRequestMeta(params, this.taken), {
      ...options,
      headers: requestHeaders(method, params),
      isResumable: false,
      onMessage: async (message, eventId) => {
        // What all operations hear may be a question to another one, of the older generation.
        if (message.kind === 'request' && !this.channel.isShared) return 'taken';
        return (await options.onMessage?.(message, eventId)) ?? 'ignored';
      },
    });
  }
}
