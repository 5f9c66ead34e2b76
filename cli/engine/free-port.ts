/** Owns: choosing TCP ports on the loopback address. Must never take a port that someone else listens on. */
import { connect, createServer } from 'node:net';

export const LOOPBACK = '127.0.0.1';

/** `wanted` if it is free, else any free port. `taken` are ports already promised to somebody. */
export async function freePort(wanted: number | undefined, taken: readonly number[] = []): Promise<number> {
  if (wanted !== undefined && !taken.includes(wanted)) {
    const port = await tryListen(wanted);
    if (port !== undefined) return port;
  }
  for (;;) {
    const port = await tryListen(0);
    if (port !== undefined && !taken.includes(port)) return port;
  }
}

/** Listens for a moment. The port may be lost again before its user binds it: callers retry with another. */
function tryListen(port: number): Promise<number | undefined> {
  return new Promise((resolve, reject) => {
    const server = createServer();
    server.once('error', (error: NodeJS.ErrnoException) => {
      if (error.code === 'EADDRINUSE' || error.code === 'EACCES') resolve(undefined);
      else reject(error);
    });
    server.listen(port, LOOPBACK, () => {
      const bound = server.address();
      server.close(() => resolve(typeof bound === 'object' && bound !== null ? bound.port : undefined));
    });
  });
}

/** Whether anybody accepts connections there now. */
export function isListening(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect({ host: LOOPBACK, port });
    const end = (listening: boolean): void => {
      socket.destroy();
      resolve(listening);
    };
    socket.once('connect', () => end(true));
    socket.once('error', () => end(false));
  });
}
