// Owns the one check whether a cluster has our search attributes; without them a start fails and an upsert wedges.
// Must never add them: that is an operator's act; the exact command is printed.

import type { Client } from '@temporalio/client';
import { missingSearchAttributes } from '../operation/names.js';

export type SearchAttributesCheck =
  | { readonly kind: 'present' }
  | { readonly kind: 'absent'; readonly advice: string };

export async function checkSearchAttributes(
  client: Client,
  namespace: string,
): Promise<SearchAttributesCheck> {
  let wrong: readonly string[];
  try {
    const { customAttributes } = await client.connection.operatorService.listSearchAttributes({ namespace });
    wrong = missingSearchAttributes(customAttributes);
  } catch (error) {
    const why = error instanceof Error ? error.message : 'unknown reason';
    return {
      kind: 'absent',
      advice: `search attributes cannot be read on this cluster (${why}); going on without them`,
    };
  }
  if (wrong.length === 0) return { kind: 'present' };
  const flags = wrong.map((name) => `--name ${name} --type Keyword`).join(' ');
  const command = `temporal operator search-attribute create --namespace ${namespace} ${flags}`;
  return {
    kind: 'absent',
    advice: `search attributes ${wrong.join(', ')} are missing; going on without them. To add: ${command}`,
  };
}
