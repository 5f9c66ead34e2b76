// Owns Ctrl-C and its kin: the first one asks the command to end, the second one ends it on the spot.
// Must never cancel an operation: an interrupt is local.

import { EXIT_CODES } from './exit-codes.js';

export interface Interrupts {
  readonly signal: AbortSignal;
  /** As if Ctrl-C had been pressed (a prompt reads the key itself). */
  interrupt(): void;
  /** Gives the signals back. */
  release(): void;
}

const SIGNALS = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const;

export function watchInterrupts(): Interrupts {
  const controller = new AbortController();
  const interrupt = (): void => {
    // What was begun is durable: at worst a submission in flight is in doubt, which its receipt or status will say.
    if (controller.signal.aborted) process.exit(EXIT_CODES.interrupted);
    controller.abort();
  };
  for (const name of SIGNALS) process.on(name, interrupt);
  return {
    signal: controller.signal,
    interrupt,
    release: () => {
      for (const name of SIGNALS) process.off(name, interrupt);
    },
  };
}

/** Resolves when the signal is aborted. */
export function whenAborted(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve();
    else signal.addEventListener('abort', () => resolve(), { once: true });
  });
}
