// Owns the one error of getting a token. Its sentence says what to configure; must never hold a token, a secret, or what
// a program or an authorization server said in words of its own.

export class CredentialFault extends Error {
  override readonly name = 'CredentialFault';
}
