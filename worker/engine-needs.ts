// Owns what an engine must have before our workers can use it, for whoever starts one.
// Must never start or change an engine.

import {
  DEFAULT_TASK_QUEUE,
  pollQueueOf,
  SEARCH_ATTRIBUTES,
  type SearchAttributeName,
} from '../operation/names.js';

export { DEFAULT_TASK_QUEUE, pollQueueOf };

/** By name; all of them are keywords. */
export const ENGINE_SEARCH_ATTRIBUTES = Object.fromEntries(
  SEARCH_ATTRIBUTES.map((name) => [name, 'Keyword']),
) as Readonly<Record<SearchAttributeName, 'Keyword'>>;
