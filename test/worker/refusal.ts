// Owns what a configuration is refused with. Must never take another error for a refusal.

import { ConfigurationError, parseToolServers } from '../../worker/tool-servers.js';

/** The mistakes of a configuration that must not be accepted. */
export function refusal(json: unknown, env: Record<string, string> = {}): ConfigurationError {
  try {
    parseToolServers(json, env);
  } catch (error) {
    if (ConfigurationError.isInstance(error)) return error;
    throw error;
  }
  throw new Error('accepted');
}
