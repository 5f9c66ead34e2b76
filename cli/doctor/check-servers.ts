// Owns the doctor's look at the configuration and the tool servers in it. Must never call a tool.

import { ConfigurationError } from '../../worker/configuration-error.js';
import { inspectCredential, inspectServer } from '../../worker/inspect-server.js';
import { type ConfiguredServer, loadToolServers, type ToolServersConfig } from '../../worker/tool-servers.js';
import { type Finding, unknown, well, wrong } from './finding.js';

export interface CheckedConfig {
  readonly config: ToolServersConfig | null;
  readonly findings: readonly Finding[];
}

/** `file` null: none was named, and the default one is not there. */
export async function checkConfig(file: string | null, defaultFile: string): Promise<CheckedConfig> {
  if (file === null) {
    const says = `${defaultFile} is not there: write it, or name another with --config`;
    return { config: null, findings: [unknown('configuration', says)] };
  }
  try {
    const config = await loadToolServers(file, process.env);
    const notes = config.notes.map((note) => wrong('configuration', note, `mend ${file}`));
    const names = [...config.servers.keys()].join(', ') || 'no servers';
    return { config, findings: notes.length > 0 ? notes : [well('configuration', `${file}: ${names}`)] };
  } catch (error) {
    if (!ConfigurationError.isInstance(error)) throw error;
    const findings = error.mistakes.map(({ path, message }) =>
      wrong('configuration', `${path} ${message}`, `mend ${file}`),
    );
    return { config: null, findings };
  }
}

export async function checkServers(config: ToolServersConfig): Promise<readonly Finding[]> {
  // Those that cannot be used were told with the configuration.
  const usable = [...config.servers].filter(([, { unavailable }]) => unavailable === null);
  return (await Promise.all(usable.map(([name, configured]) => checkServer(name, configured)))).flat();
}

async function checkServer(name: string, configured: ConfiguredServer): Promise<readonly Finding[]> {
  const what = `server ${name}`;
  const credential = await inspectCredential(configured);
  const ofCredential = `${what} credential`;
  // Without one the server would only refuse us.
  if (credential?.kind === 'missing')
    return [wrong(ofCredential, credential.why, 'mend "durable.auth" of this server')];
  const findings = credential ? [well(ofCredential, credential.what)] : [];
  return [...findings, ...(await lookAtServer(what, configured))];
}

async function lookAtServer(what: string, configured: ConfiguredServer): Promise<readonly Finding[]> {
  const seen = await inspectServer(configured);
  if (seen.kind === 'unusable') {
    const { program, auth } = configured.server;
    const keys = program
      ? '"command", "args" and "env"'
      : `"url" and ${auth ? '"durable.auth"' : '"headers"'}`;
    return [wrong(what, seen.why, `${program ? '' : 'start it, or '}mend ${keys} of this server`)];
  }
  if (seen.kind === 'declared') {
    const methods = seen.toolNames.join(', ') || 'no methods';
    return [
      well(what, `aip-151, declared: ${methods} (not contacted: it could only be asked by starting work)`),
    ];
  }
  const { protocolVersion, hasTasks, toolNames, strangers } = seen;
  const tasks = hasTasks ? 'tasks' : 'no tasks (its tools are called synchronously)';
  return [
    well(what, `MCP ${protocolVersion}, ${tasks}, ${toolNames.length} tools`),
    ...strangers.map(({ name: tool, nearest }) =>
      wrong(
        what,
        `"durable" has settings for the tool "${tool}", which it does not publish`,
        nearest === null ? 'take them out' : `did you mean "${nearest}"?`,
      ),
    ),
  ];
}
