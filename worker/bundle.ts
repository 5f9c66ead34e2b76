// Owns where the prebuilt workflow bundle lies and how it is made.
// Must never be imported by workflow code.

import { existsSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { bundleWorkflowCode, DefaultLogger, type WorkflowBundleWithSourceMap } from '@temporalio/worker';

/** Where `npm run build` puts the bundle, beside the compiled rooms. */
export const PREBUILT_BUNDLE = fileURLToPath(new URL('../workflow-bundle.js', import.meta.url));
const WORKFLOWS = fileURLToPath(new URL('../workflows/index.js', import.meta.url));

export interface BundleOptions {
  readonly payloadConverterPath?: string;
  readonly failureConverterPath?: string;
  readonly workflowInterceptorModules?: string[];
}

export function bundleWorkflows(options: BundleOptions = {}): Promise<WorkflowBundleWithSourceMap> {
  return bundleWorkflowCode({ workflowsPath: WORKFLOWS, logger: new DefaultLogger('WARN'), ...options });
}

/** The prebuilt bundle, or one made now where converters or interceptors have to be inside it. */
export async function workflowBundle(
  options: BundleOptions = {},
): Promise<{ codePath: string } | { code: string }> {
  const isPlain = Object.values(options).every((value) => value === undefined);
  if (isPlain && existsSync(PREBUILT_BUNDLE)) return { codePath: PREBUILT_BUNDLE };
  return bundleWorkflows(options);
}
