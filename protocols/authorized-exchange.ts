// Owns one HTTP exchange with a server's credential, and what a refusal of it means: renew, go on, or say what to mend.
// Must never send a submission twice, nor give a credential to another place than the server's own URL.

import { extractWWWAuthenticateParams } from '@modelcontextprotocol/sdk/client/auth.js';
import { clip } from '../operation/policy.js';
import type { ToolServer } from './adapter.js';
import { CredentialFault } from './credentials/credential-fault.js';
import { keeperOf } from './credentials/keepers.js';
import { exchange, HttpFault, type HttpReply, type HttpRequest } from './http.js';

/**
 * `submission`: a 401 ends this attempt as not sent (RFC 9110 section 15.5.2: it was not applied), with the token renewed
 * for the next one, which has a claim of its own. `other`: it goes on at once with the new token.
 */
export type Purpose = 'submission' | 'other';

/** @throws HttpFault; `credential`: there is no token, or it was renewed and nothing ran. */
export async function authorizedExchange(
  server: ToolServer,
  request: HttpRequest,
  purpose: Purpose,
): Promise<HttpReply> {
  const keeper = keeperOf(server);
  if (!keeper) {
    const token = server.auth?.kind === 'bearer' ? server.auth.token : null;
    return advised(server, await exchange(token === null ? request : withBearer(request, token)));
  }
  const token = await orFault(keeper.token());
  const reply = await exchange(withBearer(request, token));
  if (reply.status < 400) keeper.accepted(token);
  if (reply.status !== 401) return advised(server, reply);
  let next: string | null;
  try {
    next = await orFault(keeper.afterRefusal(token));
  } catch (error) {
    reply.close();
    throw error;
  }
  if (next === null) return advised(server, reply);
  reply.close();
  if (purpose === 'submission')
    throw new HttpFault(
      'credential',
      false,
      'HTTP 401: the token was spent and has been renewed, nothing ran',
    );
  const second = await exchange(withBearer(request, next));
  if (second.status < 400) keeper.accepted(next);
  return advised(server, second);
}

function withBearer(request: HttpRequest, token: string): HttpRequest {
  return { ...request, headers: { ...request.headers, authorization: `Bearer ${token}` } };
}

async function orFault<T>(promise: Promise<T>): Promise<T> {
  try {
    return await promise;
  } catch (error) {
    if (error instanceof CredentialFault) throw new HttpFault('credential', false, error.message);
    throw error;
  }
}

/** A refusal with the sentence that says what to configure. */
function advised(server: ToolServer, reply: HttpReply): HttpReply {
  const advice = reply.status === 401 || reply.status === 403 ? adviceFor(server, reply) : null;
  return advice === null ? reply : Object.assign(reply, { advice });
}

const ON_401 = {
  bearer: 'check the token of "auth.bearer"',
  command: 'a token that "auth.command" has just given is refused: check that it is for this server',
  oauth:
    'a token that "auth.oauth" has just brought is refused: check "scope", and that the server takes tokens of "issuer"',
} as const;

function adviceFor(server: ToolServer, reply: HttpReply): string | null {
  const challenge = reply.header('www-authenticate');
  // The SDK reads the header off a Response; the scope is a stranger's text.
  const asked = challenge === null ? {} : readChallenge(challenge);
  if (reply.status === 403 && asked.error === 'insufficient_scope') {
    const scope = asked.scope === undefined ? 'another scope' : `the scope "${clip(asked.scope, 100)}"`;
    return `the server wants ${scope}: ${scopeRemedy(server)}`;
  }
  return reply.status === 401 && server.auth ? ON_401[server.auth.kind] : null;
}

function readChallenge(challenge: string): { scope?: string; error?: string } {
  try {
    return extractWWWAuthenticateParams(
      new Response(null, { status: 403, headers: { 'www-authenticate': challenge } }),
    );
  } catch {
    return {};
  }
}

function scopeRemedy({ auth }: ToolServer): string {
  switch (auth?.kind) {
    case 'oauth':
      return 'put it into "auth.oauth.scope", and let the authorization server grant it';
    case 'command':
      return 'let "auth.command" give a token that has it';
    case 'bearer':
      return 'give "auth.bearer" a token that has it';
    default:
      return 'give "headers" a credential that has it';
  }
}
