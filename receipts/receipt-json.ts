// Owns how a receipt becomes text and text becomes a receipt again.
// Must never accept a text that does not match its digest.

import { createHash } from 'node:crypto';

import canonicalize from 'canonicalize';

import type { Receipt } from '../operation/receipt.js';
import { StoreError } from './store.js';

export function sha256Hex(data: string | Uint8Array): string {
  return createHash('sha256').update(data).digest('hex');
}

export interface ReceiptText {
  readonly json: string;
  readonly digest: string;
}

/**
 * Canonical JSON (RFC 8785) and its SHA-256. A half surrogate (a text cut in mid-character, or sent so by a server)
 * has no canonical form: it becomes U+FFFD here, or acceptance would fail for ever.
 */
export function toReceiptText(receipt: Receipt): ReceiptText {
  const json = canonicalText(receipt);
  return { json, digest: sha256Hex(json) };
}

/** Whatever a receipt holds, as its text says it. */
export function canonicalText(value: unknown): string {
  const wellFormed: unknown = JSON.parse(
    JSON.stringify(value, (_key, part: unknown) =>
      typeof part === 'string' ? part.replace(/\p{Surrogate}/gu, '\uFFFD') : part,
    ),
  );
  const json = canonicalize(wellFormed);
  if (json === undefined) throw new TypeError('no JSON value');
  return json;
}

/** @throws StoreError StoreUnusable where the text was changed after it was written. */
export function fromReceiptText(text: ReceiptText): Receipt {
  if (sha256Hex(text.json) !== text.digest) {
    throw new StoreError(
      'StoreUnusable',
      `The receipt ${text.digest} does not match its digest: the store is damaged, restore it from a backup.`,
    );
  }
  return JSON.parse(text.json) as Receipt;
}
