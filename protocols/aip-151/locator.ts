// Owns what of a declared method an operation carries with it: where its own methods are, from the moment it is submitted.
// Must never hold a credential.

import type { JsonObject } from '../../operation/json.js';
import { WireFault } from '../adapter.js';
import type { DeclaredMethod, OperationMethods } from '../declared-method.js';
import { isObject } from '../json-members.js';

export interface Locator extends OperationMethods {
  readonly tool: string;
}

/** As it is stored with the operation. */
export function locatorOf(tool: string, { operation }: DeclaredMethod): JsonObject {
  const { get, cancel, deleteAfterReceipt, list, pollIntervalMs } = operation;
  return {
    tool,
    get,
    cancel,
    deleteAfterReceipt,
    list: list === null ? null : { ...list },
    pollIntervalMs,
  };
}

/** @throws WireFault ProtocolViolation where it is none that this contract wrote */
export function readLocator(stored: JsonObject): Locator {
  const { tool, get, cancel, deleteAfterReceipt, list, pollIntervalMs } = stored;
  const isOurs =
    typeof tool === 'string' &&
    typeof get === 'string' &&
    typeof pollIntervalMs === 'number' &&
    isTextOrNull(cancel) &&
    isTextOrNull(deleteAfterReceipt) &&
    (list === null || isObject(list));
  if (!isOurs) throw new WireFault('ProtocolViolation', 'what the operation is reached by is not of aip-151');
  return stored as unknown as Locator;
}

function isTextOrNull(value: unknown): boolean {
  return value === null || typeof value === 'string';
}
