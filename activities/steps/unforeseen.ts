// Owns what an error is that no adapter foresaw: a fault that is counted and bounded, never tried for ever unheard.
// Must never take a retry, an interruption or the store's own trouble for the server's.

import { WireFault, type WireFaultKind } from '../../protocols/adapter.js';
import { isStoreFault, StepInterrupted, StepRetry } from '../ports.js';

/** The wire's fault as it is, any other error as one of `kind`. @throws what is no fault of the wire at all */
export function wireFaultFrom(error: unknown, kind: WireFaultKind): WireFault {
  if (WireFault.isInstance(error)) return error;
  if (error instanceof StepRetry || error instanceof StepInterrupted || isStoreFault(error)) throw error;
  return new WireFault(kind, error instanceof Error ? error.message : 'an unknown fault');
}
