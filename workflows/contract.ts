// Owns what callers and the workflow exchange: the start input, the messages, the end.
// Must never hold a secret or a configuration: inputs and ends are history.

import { defineQuery, defineSignal, defineUpdate } from '@temporalio/workflow';
import type { ReplyMail, ReplyVerdict } from '../operation/facts.js';
import type { JsonObject } from '../operation/json.js';
import { MESSAGES } from '../operation/names.js';
import type { Receipt } from '../operation/receipt.js';
import type { ToolOperation } from '../operation/record.js';

export interface ToolOperationInput {
  readonly callNodeId: string;
  readonly requestDigest: string;
  readonly server: string;
  readonly tool: string;
  readonly arguments: JsonObject;
  /** ms; null = the tool's or the product's default. */
  readonly waitBudgetMs: number | null;
  /** False where the cluster has no such attributes: an upsert would wedge the run. */
  readonly searchAttributes: boolean;
  /** A person terminated the run before this one: where nothing was claimed, that counts as a cancel. */
  readonly lastRunTerminated?: boolean;
}

/** What a run completes with, whatever the outcome. */
export interface OperationEnd {
  readonly receipt: Receipt;
  /** The result's JSON text exactly as received, where it is small enough to ride here; else read it by its digest. */
  readonly resultJson: string | null;
}

export type ReplyMessage = Omit<ReplyMail, 'replyToken'>;

export interface CancelMessage {
  readonly reason: string;
  readonly requestedBy: string;
  /** Unique per request: its sender finds in the record whether it was taken up. */
  readonly requestToken?: string;
}

export interface OperatorMessage {
  readonly decision: 'neverCreated' | 'close' | 'found' | 'ended';
  /** Of `found`: the far side's own name of the work. */
  readonly remoteId?: string;
  /** Of `ended`. */
  readonly outcome?: 'completed' | 'failed';
  /** Of `ended`: the result as JSON text, stored exactly so. */
  readonly resultJson?: string;
  readonly evidence: string;
  readonly decidedBy: string;
}

export const answerUpdate = defineUpdate<ReplyVerdict, [ReplyMessage]>(MESSAGES.answerUpdate);
export const answerSignal = defineSignal<[ReplyMessage]>(MESSAGES.answerSignal);
export const cancelSignal = defineSignal<[CancelMessage]>(MESSAGES.cancelSignal);
export const operatorSignal = defineSignal<[OperatorMessage]>(MESSAGES.operatorSignal);
/** Whoever put a backup in the place of the store says so to every run. */
export const restoredSignal = defineSignal(MESSAGES.restoredSignal);
export const operationQuery = defineQuery<ToolOperation>(MESSAGES.operationQuery);
