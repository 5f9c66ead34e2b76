// Owns the few words of `oidc-provider` that a test speaks; the package brings no declarations.
declare module 'oidc-provider' {
  import type { IncomingMessage, ServerResponse } from 'node:http';

  interface Saved {
    save(): Promise<string>;
  }
  class Grant implements Saved {
    constructor(properties: { accountId: string; clientId: string });
    addOIDCScope(scope: string): void;
    addResourceScope(resource: string, scope: string): void;
    save(): Promise<string>;
  }
  class RefreshToken implements Saved {
    constructor(properties: object);
    save(): Promise<string>;
  }
  interface GrantContext {
    readonly oidc: { readonly params?: Readonly<Record<string, unknown>> };
  }
  export default class Provider {
    constructor(issuer: string, configuration: object);
    readonly Client: { find(id: string): Promise<object | undefined> };
    readonly Grant: typeof Grant;
    readonly RefreshToken: typeof RefreshToken;
    on(event: 'grant.success' | 'grant.error', listener: (context: GrantContext) => void): void;
    callback(): (request: IncomingMessage, response: ServerResponse) => void;
  }
}
