// Owns where another Node comes from: the npm packages `node-<platform>-<arch>`, the official binary with its headers.
// Must never answer with another major than the one asked for.

import { mkdirSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { runProgram, tryProgram } from './run-program.mjs';

/** What npm says where a package, or this version of it, is not in the registry. */
const NOT_THERE = ['ETARGET', 'E404'];

/** @returns the running Node as it is, any other major as newly installed in `folder` */
export async function fetchNode(major, folder) {
  if (major === process.versions.node.split('.')[0]) {
    return runtime(process.execPath, process.versions.node, process.env);
  }
  const name = `node-${process.platform}-${process.arch}`;
  mkdirSync(folder, { recursive: true });
  writeFileSync(join(folder, 'package.json'), '{ "private": true }\n');
  const args = ['install', '--json', '--no-audit', '--no-fund', '--ignore-scripts', `${name}@${major}`];
  const install = await tryProgram('npm', args, { cwd: folder });
  if (install.code !== 0) throw new Error(whyNot(`${name}@${major}`, major, install));
  const nodeDir = join(folder, 'node_modules', name);
  const node = join(nodeDir, 'bin', 'node');
  const version = (await runProgram(node, ['--version'])).trim().slice(1);
  if (!version.startsWith(`${major}.`)) throw new Error(`${name}@${major} holds Node ${version}`);
  const env = {
    ...process.env,
    PATH: `${dirname(node)}:${process.env.PATH}`,
    // Native modules are compiled where no prebuilt file can be fetched, against the headers beside this binary.
    npm_config_nodedir: nodeDir,
  };
  return runtime(node, version, env);
}

function runtime(node, version, env) {
  return { node, version, env, isRunning: node === process.execPath };
}

function whyNot(wanted, major, { stdout, stderr }) {
  let code;
  try {
    code = JSON.parse(stdout).error?.code;
  } catch {
    // npm died before it could say anything in JSON; its words on stderr follow below.
  }
  return NOT_THERE.includes(code)
    ? `the npm registry has no Node ${major} for this machine: there is no ${wanted}`
    : `Node ${major} could not be installed as ${wanted} (${code ?? 'npm failed'})\n${stdout}${stderr}`;
}
