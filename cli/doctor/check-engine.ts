// Owns the doctor's look at the Temporal server: version, search attributes, workers, poll queue and its limits.
// Must never change anything there: it names the command that would.

import { ENGINE_SEARCH_ATTRIBUTES, pollQueueOf } from '../../worker/engine-needs.js';
import type { ToolServersConfig } from '../../worker/tool-servers.js';
import { limitsOf, partitionsOf, pollersOf, searchAttributeTypes, serverVersion } from '../engine-looks.js';
import type { Runtime } from '../runtime.js';
import { type Finding, reasonOf, unknown, well, wrong } from './finding.js';

export async function checkEngine(
  runtime: Runtime,
  config: ToolServersConfig | null,
): Promise<readonly Finding[]> {
  const { temporalAddress, isEmbedded } = runtime;
  const how = isEmbedded && runtime.uiUrl !== null ? ', started for this look' : '';
  const findings: Finding[] = [
    await looked('Temporal server', async () =>
      well('Temporal server', `${await serverVersion(runtime)} at ${temporalAddress}${how}`),
    ),
    well('namespace', runtime.temporal.options.namespace),
    await looked('search attributes', () => checkSearchAttributes(runtime)),
    await looked('workers', () => checkWorkers(runtime)),
    await looked('poll queue partitions', () => checkPartitions(runtime)),
    await looked('poll rate limits', () => checkLimits(runtime, config)),
  ];
  return findings;
}

async function looked(what: string, look: () => Promise<Finding>): Promise<Finding> {
  try {
    return await look();
  } catch (error) {
    return unknown(what, `this server does not tell (${reasonOf(error)})`);
  }
}

async function checkSearchAttributes(runtime: Runtime): Promise<Finding> {
  const what = 'search attributes';
  const { namespace } = runtime.temporal.options;
  const types = await searchAttributeTypes(runtime);
  const needed = Object.entries(ENGINE_SEARCH_ATTRIBUTES);
  const missing = needed.filter(([name]) => types[name] === undefined);
  const mistyped = needed.filter(([name, type]) => types[name] !== undefined && types[name] !== type);
  if (missing.length === 0 && mistyped.length === 0) {
    return well(what, needed.map(([name, type]) => `${name} ${type}`).join(', '));
  }
  const says = [
    ...missing.map(([name]) => `${name} is missing`),
    ...mistyped.map(([name, type]) => `${name} is ${types[name]}, not ${type}`),
  ];
  const command = (verb: string, flags: readonly string[]): string =>
    `temporal operator search-attribute ${verb} --namespace ${namespace} ${flags.join(' ')}`;
  const remove = mistyped.map(([name]) => `--name ${name}`);
  const create = [...missing, ...mistyped].map(([name, type]) => `--name ${name} --type ${type}`);
  // Creating one again with another type is accepted in silence, and changes nothing.
  const mend = [
    ...(remove.length > 0 ? [command('remove', [...remove, '--yes'])] : []),
    command('create', create),
  ];
  return wrong(what, says.join(', '), `${mend.join(' && ')}; calls go on without them meanwhile`);
}

async function checkWorkers(runtime: Runtime): Promise<Finding> {
  const pollers = await pollersOf(runtime);
  const on = `on the task queue "${runtime.taskQueue}"`;
  if (pollers > 0) return well('workers', `${pollers} asked for work lately ${on}`);
  return runtime.isEmbedded
    ? unknown('workers', `none ${on} now; "dtc up" brings one, and each "dtc call" its own`)
    : wrong('workers', `none ${on}`, 'restart "dtc up"');
}

async function checkPartitions(runtime: Runtime): Promise<Finding> {
  const what = 'poll queue partitions';
  const partitions = await partitionsOf(runtime, pollQueueOf(runtime.taskQueue));
  if (partitions === null) return unknown(what, 'this server does not tell');
  if (partitions === 1) return well(what, '1: rate limits are exact');
  return wrong(
    what,
    `${partitions}: each has its own share of the rate limits, so polls may be slower than configured`,
    'set matching.numTaskqueueReadPartitions and matching.numTaskqueueWritePartitions to 1 for ' +
      `"${pollQueueOf(runtime.taskQueue)}" in the server's dynamic configuration`,
  );
}

async function checkLimits(runtime: Runtime, config: ToolServersConfig | null): Promise<Finding> {
  const what = 'poll rate limits';
  const { defaultPerSecond, weights } = await limitsOf(runtime, pollQueueOf(runtime.taskQueue));
  if (defaultPerSecond === null) {
    return unknown(what, 'none are set yet: the first worker ("dtc up" or "dtc call") sets them');
  }
  const expected = [...(config?.servers ?? [])].map(
    ([name, { server }]) => [name, server.maxPollsPerSecond] as const,
  );
  const off = expected.filter(([name, perSecond]) => (weights[name] ?? 1) * defaultPerSecond !== perSecond);
  if (off.length > 0) {
    const told = off.map(
      ([name, perSecond]) => `${name} ${(weights[name] ?? 1) * defaultPerSecond}/s instead of ${perSecond}/s`,
    );
    return wrong(
      what,
      told.join(', '),
      'restart the worker with this configuration: it sets them at its start',
    );
  }
  const told = expected.map(([name, perSecond]) => `${name} ${perSecond}/s`);
  return well(what, told.join(', ') || `${defaultPerSecond}/s per server`);
}
