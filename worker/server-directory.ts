// Owns which tool servers this worker may reach, as the step bodies see it.
// Must never hand out a server that is not configured.

import type { ServerDirectory } from '../activities/ports.js';
import { LIMITS } from '../operation/limits.js';
import type { OperationPolicy } from '../operation/row.js';
import { policyOf, type ToolServersConfig } from './tool-servers.js';

/** Budgets of every new operation (ms), instead of those in operation/limits.ts. */
export type Budgets = Partial<
  Pick<
    OperationPolicy,
    | 'submitBudgetMs'
    | 'lookUpBudgetMs'
    | 'settleBudgetMs'
    | 'fetchBudgetMs'
    | 'inputBudgetMs'
    | 'recheckGapMs'
  >
>;

export function serverDirectory(config: ToolServersConfig, budgets: Budgets = {}): ServerDirectory {
  return {
    find: (name) => {
      const configured = config.servers.get(name);
      return configured && configured.unavailable === null ? configured.server : null;
    },
    unavailable: (name) => config.servers.get(name)?.unavailable ?? null,
    policyOf: (name, tool, overrides) => ({
      ...policyOf(
        config.servers.get(name),
        tool,
        overrides.waitBudgetMs === null ? {} : { waitBudgetMs: overrides.waitBudgetMs },
      ),
      ...budgets,
    }),
  };
}

/** The longest that a submission of a tool without tasks may take (ms). */
export function longestPlainCallMs(config: ToolServersConfig): number {
  const bounds = [...config.servers.values()].flatMap(({ tools }) =>
    Object.values(tools).map((tool) => tool.synchronousBoundMs ?? 0),
  );
  return Math.max(LIMITS.synchronousBoundMs, ...bounds);
}
