/**
 * Owns: the promise that a child process does not outlive this one, whether it exits or is told to end. Must never
 * change how this process reacts to a signal that somebody else here handles.
 */
import type { ChildProcess } from 'node:child_process';

const children = new Set<ChildProcess>();

/** Ctrl-C too: the child is in a group of its own, a terminal does not reach it. */
const SIGNALS = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const;

/** Kills `child` when this process ends in any way but SIGKILL. Call the result when the child is gone. */
export function endWithUs(child: ChildProcess): () => void {
  if (children.size === 0) {
    process.on('exit', killAll);
    for (const signal of SIGNALS) process.on(signal, onSignal);
  }
  children.add(child);
  return () => {
    if (!children.delete(child) || children.size > 0) return;
    process.off('exit', killAll);
    for (const signal of SIGNALS) process.off(signal, onSignal);
  };
}

/** 'exit' listeners run synchronously and last; SIGKILL is safe for a server whose database is a WAL. */
function killAll(): void {
  for (const child of children) child.kill('SIGKILL');
}

function onSignal(signal: NodeJS.Signals): void {
  // Another listener (a worker that drains) decides when this process ends, and 'exit' follows then.
  if (process.listenerCount(signal) > 1) return;
  killAll();
  // A listener of ours has replaced the default; take it away and let the signal do what it always did.
  process.off(signal, onSignal);
  process.kill(process.pid, signal);
}
