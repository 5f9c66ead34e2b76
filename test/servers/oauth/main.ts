// Owns a real authorization server (`oidc-provider`) as a process: short-lived opaque tokens for one resource.
// Must never listen beyond the loopback address, nor outlive the test that started it.

import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import Provider from 'oidc-provider';

/** Handed over as JSON in the first argument. */
export interface AuthorizationServerOptions {
  readonly clientSecret: string;
  readonly gateSecret: string;
  readonly tokenSeconds: number;
}

export type AuthorizationServerMessage =
  | { readonly kind: 'listening'; readonly issuer: string }
  | { readonly kind: 'grant'; readonly grantType: string; readonly isOk: boolean }
  | { readonly kind: 'refreshToken'; readonly value: string };

const CLIENT = { redirect_uris: ['http://127.0.0.1/never'], response_types: ['code'] };

const options = JSON.parse(process.argv[2] ?? 'null') as AuthorizationServerOptions;
const server = createServer();
server.listen(0, '127.0.0.1', () => {
  const issuer = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const provider = new Provider(issuer, configuration());
  const tell = (isOk: boolean) => (context: { oidc: { params?: Readonly<Record<string, unknown>> } }) =>
    say({ kind: 'grant', grantType: String(context.oidc.params?.['grant_type']), isOk });
  provider.on('grant.success', tell(true));
  provider.on('grant.error', tell(false));
  server.on('request', provider.callback());
  process.on('message', (resource: string) => void makeRefreshToken(provider, resource));
  say({ kind: 'listening', issuer });
});
process.on('disconnect', () => process.exit());

function say(message: AuthorizationServerMessage): void {
  process.send?.(message);
}

function configuration(): object {
  const { clientSecret: client_secret, gateSecret, tokenSeconds } = options;
  return {
    clients: [
      {
        ...CLIENT,
        client_id: 'worker',
        scope: 'tools',
        client_secret,
        grant_types: ['client_credentials', 'authorization_code'],
      },
      {
        ...CLIENT,
        client_id: 'refresher',
        client_secret,
        grant_types: ['refresh_token', 'authorization_code'],
      },
      { ...CLIENT, client_id: 'gate', client_secret: gateSecret },
    ],
    scopes: ['openid', 'offline_access', 'tools', 'admin'],
    features: {
      devInteractions: { enabled: false },
      clientCredentials: { enabled: true },
      introspection: { enabled: true },
      revocation: { enabled: true },
      resourceIndicators: {
        enabled: true,
        defaultResource: () => undefined,
        useGrantedResource: () => true,
        getResourceServerInfo: () => ({
          scope: 'tools admin',
          accessTokenTTL: tokenSeconds,
          accessTokenFormat: 'opaque',
        }),
      },
    },
    // What a rotating server does: each refresh token is good once.
    rotateRefreshToken: true,
    ttl: { RefreshToken: 3_600, Grant: 3_600 },
    findAccount: async (_: unknown, accountId: string) => ({
      accountId,
      claims: async () => ({ sub: accountId }),
    }),
  };
}

/** As if a person had agreed in a browser. */
async function makeRefreshToken(provider: Provider, resource: string): Promise<void> {
  const who = { accountId: 'alice', clientId: 'refresher' };
  const grant = new provider.Grant(who);
  grant.addOIDCScope('openid offline_access');
  grant.addResourceScope(resource, 'tools');
  const grantId = await grant.save();
  const client = await provider.Client.find('refresher');
  const scope = 'openid offline_access tools';
  const token = new provider.RefreshToken({
    ...who,
    client,
    grantId,
    scope,
    resource,
    gty: 'authorization_code',
    authTime: Math.floor(Date.now() / 1_000),
  });
  say({ kind: 'refreshToken', value: await token.save() });
}
