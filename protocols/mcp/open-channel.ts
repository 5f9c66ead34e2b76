// Owns which transport carries a server's messages.
// Must never open anything by itself: a channel does when it is used.

import type { ToolServer } from '../adapter.js';
import { type ChannelSession, HttpChannel, type RpcChannel } from './channel.js';
import { StdioChannel } from './stdio-channel.js';

export function openChannel(server: ToolServer, session: ChannelSession): RpcChannel {
  return server.program ? new StdioChannel(server, session) : new HttpChannel(server, session);
}
