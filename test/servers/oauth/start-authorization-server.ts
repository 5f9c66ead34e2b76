// Owns the life of the authorization server, and the count of the tokens that it gave: its own word, not ours.
// Must never leave the process behind.

import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import type { AuthorizationServerMessage, AuthorizationServerOptions } from './main.js';

export interface AuthorizationServer {
  readonly issuer: string;
  readonly gateSecret: string;
  /** Each answered token request: the grant, and whether it was granted. */
  readonly grants: readonly { readonly grantType: string; readonly isOk: boolean }[];
  /** A refresh token as a person's consent would have made it. */
  refreshTokenFor(resource: string): Promise<string>;
  /** RFC 7009: from now on it is not active. */
  revoke(token: string): Promise<void>;
  stop(): Promise<void>;
}

const PROGRAM = new URL('../../../dist/test/servers/oauth/main.js', import.meta.url).pathname;
const GATE_SECRET = 'gate-secret-of-introspection';

export async function startAuthorizationServer(
  options: Omit<AuthorizationServerOptions, 'gateSecret'>,
): Promise<AuthorizationServer> {
  const given: AuthorizationServerOptions = { ...options, gateSecret: GATE_SECRET };
  // Its warnings (a development set-up, an older Node) are none of a test's.
  const child = fork(PROGRAM, [JSON.stringify(given)], { stdio: ['ignore', 'ignore', 'ignore', 'ipc'] });
  const grants: { grantType: string; isOk: boolean }[] = [];
  child.on('message', (message: AuthorizationServerMessage) => {
    if (message.kind === 'grant') grants.push({ grantType: message.grantType, isOk: message.isOk });
  });
  const { issuer } = await messageOf(child, 'listening');
  return {
    issuer,
    gateSecret: GATE_SECRET,
    grants,
    async refreshTokenFor(resource) {
      const made = messageOf(child, 'refreshToken');
      child.send(resource);
      return (await made).value;
    },
    async revoke(token) {
      const pair = `worker:${new URLSearchParams({ '': options.clientSecret }).toString().slice(1)}`;
      const reply = await fetch(`${issuer}/token/revocation`, {
        method: 'POST',
        headers: { authorization: `Basic ${Buffer.from(pair).toString('base64')}` },
        body: new URLSearchParams({ token }),
      });
      if (!reply.ok) throw new Error(`not revoked: HTTP ${reply.status}`);
    },
    async stop() {
      if (child.exitCode !== null || child.signalCode !== null) return;
      const gone = once(child, 'exit');
      child.kill('SIGKILL');
      await gone;
    },
  };
}

function messageOf<Kind extends AuthorizationServerMessage['kind']>(
  child: ChildProcess,
  kind: Kind,
): Promise<Extract<AuthorizationServerMessage, { kind: Kind }>> {
  return new Promise((resolve, reject) => {
    const onExit = (): void => reject(new Error('the authorization server ended'));
    child.once('exit', onExit);
    const onMessage = (message: AuthorizationServerMessage): void => {
      if (message.kind !== kind) return;
      child.off('message', onMessage);
      child.off('exit', onExit);
      resolve(message as Extract<AuthorizationServerMessage, { kind: Kind }>);
    };
    child.on('message', onMessage);
  });
}
