// Owns what one check of the doctor can find. Must never hold a credential: findings are printed and pasted.

export interface Finding {
  /** `unknown` is no fault: it could not be looked at, and `says` tells why. */
  readonly kind: 'well' | 'wrong' | 'unknown';
  readonly what: string;
  readonly says: string;
  /** What to do about it; of `wrong` only. */
  readonly mend: string | null;
}

export function well(what: string, says: string): Finding {
  return { kind: 'well', what, says, mend: null };
}

export function wrong(what: string, says: string, mend: string): Finding {
  return { kind: 'wrong', what, says, mend };
}

export function unknown(what: string, says: string): Finding {
  return { kind: 'unknown', what, says, mend: null };
}

export function reasonOf(error: unknown): string {
  return error instanceof Error ? error.message : 'unknown reason';
}
