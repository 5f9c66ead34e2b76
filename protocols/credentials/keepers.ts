// Owns which way of getting a token belongs to a server, one keeper per server of a worker.
// Must never make a second one for the same server: then two would ask at once.

import type { ToolServer } from '../adapter.js';
import { noteSecret } from '../redact.js';
import { tokenOfCommand } from './command-token.js';
import { OAuthTokenSource } from './oauth-token.js';
import { TokenKeeper } from './token-keeper.js';

const keepers = new WeakMap<ToolServer, TokenKeeper>();

/** Null where the server has no token, or one that nobody here can renew. */
export function keeperOf(server: ToolServer): TokenKeeper | null {
  const known = keepers.get(server);
  if (known) return known;
  const keeper = makeKeeper(server);
  if (keeper) keepers.set(server, keeper);
  return keeper;
}

function makeKeeper(server: ToolServer): TokenKeeper | null {
  const { auth } = server;
  switch (auth?.kind) {
    case 'command':
      return new TokenKeeper(async () => {
        const token = await tokenOfCommand(server.name, auth.command, auth.lifetimeMs);
        noteSecret(server, token.value);
        return token;
      });
    case 'oauth': {
      const source = new OAuthTokenSource(server, auth);
      return new TokenKeeper(() => source.fetch());
    }
    default:
      return null;
  }
}
