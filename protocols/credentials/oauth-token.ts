// Owns a token from an OAuth authorization server: discovery (RFC 9728, RFC 8414) and the two grants without a person,
// by the official SDK. Must never show the client's credentials to another server than the configured issuer.

import { ClientCredentialsProvider } from '@modelcontextprotocol/sdk/client/auth-extensions.js';
import {
  type AddClientAuthentication,
  discoverAuthorizationServerMetadata,
  discoverOAuthProtectedResourceMetadata,
  fetchToken,
  refreshAuthorization,
} from '@modelcontextprotocol/sdk/client/auth.js';
import { OAuthError } from '@modelcontextprotocol/sdk/server/auth/errors.js';
import type {
  AuthorizationServerMetadata,
  OAuthProtectedResourceMetadata,
  OAuthTokens,
} from '@modelcontextprotocol/sdk/shared/auth.js';
import {
  checkResourceAllowed,
  resourceUrlFromServerUrl,
} from '@modelcontextprotocol/sdk/shared/auth-utils.js';
import type { AuthSettings, ToolServer } from '../adapter.js';
import { HttpFault } from '../http.js';
import { formEncodedPair, noteSecret } from '../redact.js';
import { CredentialFault } from './credential-fault.js';
import { fetchByExchange } from './fetch-by-exchange.js';
import type { Token } from './token-keeper.js';

type OAuthSettings = Extract<AuthSettings, { kind: 'oauth' }>;

interface Discovered {
  readonly metadata: AuthorizationServerMetadata;
  /** RFC 8707, as the resource's own metadata writes it. */
  readonly resource: string | undefined;
}

export class OAuthTokenSource {
  private readonly server: ToolServer;
  private readonly settings: OAuthSettings;
  private discovered: Discovered | null = null;
  /** A server that rotates refresh tokens gives the next one with each access token. */
  private refreshToken: string | null;

  constructor(server: ToolServer, settings: OAuthSettings) {
    this.server = server;
    this.settings = settings;
    this.refreshToken = settings.refreshToken;
  }

  /** @throws CredentialFault */
  async fetch(): Promise<Token> {
    const askedAt = Date.now();
    try {
      this.discovered ??= await this.discover();
      const tokens = await this.ask(this.discovered);
      if (!/^[\x21-\x7e]+$/.test(tokens.access_token))
        throw this.fault('gave a token that no header can carry');
      noteSecret(this.server, tokens.access_token);
      if (tokens.refresh_token !== undefined && this.refreshToken !== null) {
        noteSecret(this.server, tokens.refresh_token);
        this.refreshToken = tokens.refresh_token;
      }
      const lifetimeMs = (tokens.expires_in ?? Number.NaN) * 1_000;
      return { value: tokens.access_token, expiresAt: lifetimeMs > 0 ? askedAt + lifetimeMs : null };
    } catch (error) {
      // The authorization server may have moved its endpoints.
      this.discovered = null;
      throw this.faultFrom(error);
    }
  }

  private async discover(): Promise<Discovered> {
    const { issuer } = this.settings;
    const published = await this.resourceMetadata();
    const named = published?.authorization_servers ?? [];
    if (named.length > 0 && !named.some((each) => isSameIssuer(each, issuer)))
      throw new CredentialFault(
        `${this.server.name} names other authorization servers than ${issuer}; check "auth.oauth.issuer"`,
      );
    const metadata = await discoverAuthorizationServerMetadata(issuer, { fetchFn: fetchByExchange });
    if (!metadata) throw this.fault('publishes no metadata (RFC 8414); check "issuer"');
    // "MUST be identical" (RFC 8414 section 3.3): else another server's endpoints could be slipped in.
    if (!isSameIssuer(metadata.issuer, issuer))
      throw this.fault('calls itself by another name; check "issuer"');
    return { metadata, resource: published?.resource };
  }

  /** Null where the tool server publishes none: older ones do not. */
  private async resourceMetadata(): Promise<OAuthProtectedResourceMetadata | null> {
    let published: OAuthProtectedResourceMetadata;
    try {
      published = await discoverOAuthProtectedResourceMetadata(this.server.url, {}, fetchByExchange);
    } catch (error) {
      // Only "there is none" may be passed over: a token without its resource may be taken by nobody.
      if (error instanceof HttpFault) throw error;
      return null;
    }
    const requestedResource = resourceUrlFromServerUrl(this.server.url);
    const configuredResource = published.resource;
    if (checkResourceAllowed({ requestedResource, configuredResource })) return published;
    throw new CredentialFault(
      `the metadata of ${this.server.name} is about another resource than its URL; check "url" of this server`,
    );
  }

  private ask({ metadata, resource }: Discovered): Promise<OAuthTokens> {
    const { clientId, clientSecret, issuer, scope } = this.settings;
    const about = { metadata, fetchFn: fetchByExchange, ...(resource === undefined ? {} : { resource }) };
    const authentication = authenticationOf(clientId, clientSecret);
    if (this.refreshToken !== null) {
      const clientInformation = {
        client_id: clientId,
        ...(clientSecret === null ? {} : { client_secret: clientSecret }),
      };
      const { refreshToken } = this;
      return refreshAuthorization(issuer, { ...about, ...authentication, clientInformation, refreshToken });
    }
    const provider = new ClientCredentialsProvider({
      clientId,
      clientSecret: clientSecret ?? '',
      expectedIssuer: issuer,
      ...(scope === null ? {} : { scope }),
    });
    return fetchToken(Object.assign(provider, authentication), issuer, about);
  }

  private faultFrom(error: unknown): CredentialFault {
    if (error instanceof CredentialFault) return error;
    if (error instanceof HttpFault) return this.fault(`cannot be asked (${error.message})`);
    if (error instanceof OAuthError)
      return this.fault(`refuses (${codeOf(error)}); ${this.remedyFor(error)}`);
    // Metadata or a token reply without its shape: the texts quote what came.
    return this.fault('answers in no form of OAuth 2; check "issuer"');
  }

  private remedyFor(error: OAuthError): string {
    switch (error.errorCode) {
      case 'invalid_client':
        return 'check "clientId" and "clientSecret"';
      case 'unauthorized_client':
      case 'unsupported_grant_type':
        return `let it allow this client the grant ${this.refreshToken === null ? 'client_credentials' : 'refresh_token'}`;
      case 'invalid_scope':
        return 'check "scope"';
      case 'invalid_grant':
        return 'the refresh token is spent or revoked: put a new one into "refreshToken" and start the worker again';
      case 'invalid_target':
        return 'it knows no such resource: register the tool server there';
      default:
        return 'its own log says why';
    }
  }

  private fault(what: string): CredentialFault {
    return new CredentialFault(
      `the authorization server ${this.settings.issuer} ("auth.oauth" of ${this.server.name}) ${what}`,
    );
  }
}

/**
 * The SDK puts id and secret into Basic as they are, where RFC 6749 (section 2.3.1) has them form-encoded: a `+` or `%`
 * arrives as another character. For such a secret this speaks in the SDK's place; empty leaves it the word.
 */
function authenticationOf(clientId: string, clientSecret: string | null): Authentication {
  if (clientSecret === null || formEncodedPair(clientId, clientSecret) === `${clientId}:${clientSecret}`)
    return {};
  const addClientAuthentication: AddClientAuthentication = (headers, params, _url, metadata) => {
    if (metadata?.token_endpoint_auth_methods_supported?.includes('client_secret_post')) {
      params.set('client_id', clientId);
      params.set('client_secret', clientSecret);
      return;
    }
    const pair = Buffer.from(formEncodedPair(clientId, clientSecret)).toString('base64');
    headers.set('authorization', `Basic ${pair}`);
  };
  return { addClientAuthentication };
}

type Authentication = { readonly addClientAuthentication?: AddClientAuthentication };

/** One `/` at the end makes no other issuer, as in the SDK. */
function isSameIssuer(a: string, b: string): boolean {
  return a.replace(/\/$/, '') === b.replace(/\/$/, '');
}

/** A code of OAuth's, never the words beside it. */
function codeOf(error: OAuthError): string {
  return /^[a-z_]{1,40}$/.test(error.errorCode) ? error.errorCode : 'an unknown code';
}
