/**
 * Owns: the preload that keeps a foreign Node server on the loopback address and ties its life to ours. Must never
 * need a file of its own: a `data:` URL is found alike from dist/ and from TypeScript sources under the tests.
 */

/** What the preload sends over the IPC channel once the server listens. */
export interface ListeningMessage {
  readonly listeningPort: number;
}

export function isListeningMessage(value: unknown): value is ListeningMessage {
  return typeof value === 'object' && value !== null && 'listeningPort' in value;
}

// Forms of listen() seen in servers: (port, callback), (port, host, callback), ({ port }). A path (string that is no
// number) is already local. The IPC channel closes when the parent dies, even by SIGKILL: then this process ends.
const PRELOAD_SOURCE = `
import net from 'node:net';
const listen = net.Server.prototype.listen;
net.Server.prototype.listen = function (...args) {
  const [first] = args;
  if (typeof first === 'object' && first !== null && 'port' in first) {
    args[0] = { ...first, host: '127.0.0.1' };
  } else if (/^\\d+$/.test(String(first))) {
    args.splice(1, typeof args[1] === 'string' ? 1 : 0, '127.0.0.1');
  }
  this.once('listening', () => {
    const address = this.address();
    if (typeof address === 'object') process.send?.({ listeningPort: address.port });
  });
  return listen.apply(this, args);
};
process.once('disconnect', () => process.exit());
`;

/** For `node --import`. */
export const LOOPBACK_ONLY_PRELOAD = `data:text/javascript,${encodeURIComponent(PRELOAD_SOURCE)}`;
