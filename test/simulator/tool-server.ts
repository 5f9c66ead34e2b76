// Owns the outside of the model server: the adapter port, each method one exchange as the plan has it.
// Must never know what the product makes of a reply.

import type { JsonObject } from '../../operation/json.js';
import type { RemoteReference } from '../../operation/row.js';
import {
  type AnswerHooks,
  type CancelAnswer,
  type FetchedResult,
  type InputReply,
  type KnownQuestions,
  type LookUp,
  type Negotiation,
  type Observation,
  type Submission,
  type SubmitHooks,
  type ToolAdapter,
  type ToolCall,
  WireFault,
  type WireQuestion,
} from '../../protocols/adapter.js';
import type { FindReply, ServerPlan } from './plan.js';
import { type Poll, ServerDesk, sessionIdOf } from './server-desk.js';

const ANSWER_SCHEMA = {
  type: 'object',
  properties: { year: { type: 'number' } },
  required: ['year'],
} as const satisfies JsonObject;

export class ToolServerModel extends ServerDesk implements ToolAdapter {
  negotiate(): Promise<Negotiation> {
    return this.exchange('negotiate', () => {
      const word = this.next(this.faults.negotiations, 'ok');
      if (word === 'notSent') throw new WireFault('NotSent', 'connection refused');
      if (word === 'transient') throw new WireFault('Transient', 'HTTP 503');
      if (word === 'violation') throw new WireFault('ProtocolViolation', 'no tools');
      if (word !== 'ok') return { kind: word, message: `said ${word}` };
      this.sessions += 1;
      const negotiated = {
        adapter: this.plan.contract,
        session: { sessionId: `session-${this.sessions}` },
        toolVersion: '1',
        descriptorDigest: 'descriptor',
        inputSchema: { type: 'object' },
        outputSchema: null,
        canList: this.plan.canList,
        hasTasks: this.plan.contract !== 'synchronous',
        canCancel: true,
        annotations: { readOnly: false, idempotent: false, destructive: false },
        lookUpTool: { requiresTasks: false, inputSchema: { type: 'object' }, outputSchema: null },
      };
      return { kind: 'negotiated', negotiated };
    });
  }

  submit(call: ToolCall, session: JsonObject, hooks: SubmitHooks): Promise<Submission> {
    const word = this.next(this.faults.creates, this.plan.contract === 'synchronous' ? 'answered' : 'ok');
    if (word === 'notSent' || word === 'notSentForAWhile') return this.#notSent(word);
    const sessionId = sessionIdOf(session);
    return this.exchange('submit', () => this.#create(call, sessionId, word), hooks.afterSend);
  }

  async #notSent(word: string): Promise<never> {
    await this.line.mayStop('before submit leaves');
    const retryAfterMs = word === 'notSent' ? null : this.plan.retryAfterMs;
    throw new WireFault('NotSent', 'connection refused', { retryAfterMs });
  }

  #create(call: ToolCall, sessionId: string, word: ServerPlan['creates'][number]): Submission {
    const { time } = this.line;
    this.ledger.creates.push({ at: time.nowMs, key: call.submissionKey, reply: word });
    if (word === 'refused') throw new WireFault('RefusedByServer', 'HTTP 401', { wireCode: 401 });
    if (word === 'vanished') throw new WireFault('Ambiguous', 'HTTP 502');
    if (word === 'late') {
      this.startsToCome += 1;
      time.after(20_000, () => {
        this.startsToCome -= 1;
        this.start(call, sessionId);
      });
      throw new WireFault('Ambiguous', 'the socket closed before a reply');
    }
    const execution = this.start(call, sessionId);
    execution.catchUp(time.nowMs);
    if (word === 'answered' || word === 'terminal') this.endNow(execution);
    if (word === 'lost') throw new WireFault('Ambiguous', 'the socket closed before a reply');
    if (word === 'answered' && execution.ended !== 'cancelled')
      return { kind: 'answered', result: this.resultOf(execution) };
    const reference = { remoteId: execution.remoteId, locator: { sessionId } };
    return { kind: 'referenced', reference, observation: this.observationOf(execution) };
  }

  findBySubmission(call: ToolCall, session: JsonObject): Promise<LookUp> {
    return this.exchange('findBySubmission', (): LookUp => {
      const word: FindReply = this.next(this.faults.finds, 'ok');
      if (word === 'transient') throw new WireFault('Transient', 'HTTP 503');
      if (call.submissionPolicy === 'lookup-tool') return this.#findByKey(call.submissionKey, word);
      const sessionId = sessionIdOf(session);
      const listed = this.executions.filter((execution) => execution.sessionId === sessionId);
      const [only, ...others] = listed.filter((execution) => !execution.isForgotten(this.line.time.nowMs));
      const isSure = word === 'ok' && this.plan.canList && !this.lostSessions.has(sessionId);
      if (!isSure || !only || others.length > 0)
        return { kind: 'cannotTell', evidence: 'no single task is listed' };
      return { kind: 'found', reference: { remoteId: only.remoteId, locator: { sessionId } } };
    });
  }

  #findByKey(key: string, word: FindReply): LookUp {
    if (word === 'cannotTell') return { kind: 'cannotTell', evidence: 'the tool failed' };
    const found = this.executions.find((execution) => execution.key === key);
    if (!found) {
      const evidence = 'the tool knows no such key';
      return this.plan.provesAbsence ? { kind: 'provedAbsent', evidence } : { kind: 'cannotTell', evidence };
    }
    return {
      kind: 'found',
      reference: { remoteId: found.remoteId, locator: { sessionId: found.sessionId } },
    };
  }

  observe(_server: unknown, reference: RemoteReference): Promise<Observation> {
    const by = this.line.caller();
    return this.exchange('observe', () => {
      const poll: Poll = {
        at: this.line.time.nowMs,
        by,
        hintMs: null,
        retryAfterMs: null,
        isAnswered: false,
        isLate: this.line.isGivenUp(by),
      };
      this.ledger.polls.push(poll);
      const word = this.next(this.faults.looks, 'ok');
      if (word === 'sessionLost') this.lostSessions.add(sessionIdOf(reference.locator));
      if (word === 'transient') throw new WireFault('Transient', 'HTTP 503');
      if (word === 'notFound') throw new WireFault('NotFound', 'JSON-RPC -32602', { wireCode: -32602 });
      if (word === 'violation') throw new WireFault('ProtocolViolation', 'about another task');
      if (word === 'retryAfter') {
        poll.retryAfterMs = this.plan.retryAfterMs;
        throw new WireFault('Transient', 'HTTP 429', { retryAfterMs: this.plan.retryAfterMs });
      }
      const seen = this.observationOf(this.find(reference), word);
      poll.hintMs = seen.intervalMs;
      poll.isAnswered = true;
      return seen;
    });
  }

  renewSession(_server: unknown, reference: RemoteReference): Promise<RemoteReference> {
    return this.exchange('renewSession', () => {
      this.sessions += 1;
      return { remoteId: reference.remoteId, locator: { sessionId: `session-${this.sessions}` } };
    });
  }

  async anchor(): Promise<JsonObject | null> {
    return this.plan.canReplayQuestions ? { from: 1 } : null;
  }

  async pickUpQuestions(
    _server: unknown,
    reference: RemoteReference,
    known: KnownQuestions,
    onQuestion: (question: WireQuestion) => Promise<void>,
  ): Promise<void> {
    const asked = await this.exchange('pickUpQuestions', () => {
      const { questions } = this.find(reference);
      const shown = questions.filter((question) => {
        const isListed = question.closedAt === null || (question.taken !== null && question.lingers > 0);
        return isListed && (this.plan.canReplayQuestions || question.handedOut === 0);
      });
      for (const question of shown) question.handedOut += 1;
      return shown.map(({ jsonRpcId }) => jsonRpcId);
    });
    for (const jsonRpcId of asked) {
      const wireKey = `${reference.remoteId}/${jsonRpcId}`;
      if (known.wireKeys.includes(wireKey)) continue;
      const question = {
        mode: 'form',
        message: `question ${jsonRpcId}`,
        schema: ANSWER_SCHEMA,
        url: null,
      } as const;
      await onQuestion({ wireKey, wire: { jsonRpcId }, question });
    }
  }

  async answer(
    _server: unknown,
    reference: RemoteReference,
    wire: JsonObject,
    reply: InputReply,
    hooks: AnswerHooks,
  ): Promise<'delivered' | 'roundClosed'> {
    const word = this.next(this.faults.answers, 'ok');
    if (word === 'notNow') throw new WireFault('Transient', 'HTTP 429');
    // A response is accepted whether or not anyone waits for it: the status is the only witness.
    const isWaiting = await this.exchange('the status before an answer', () => {
      const meaning = this.#meaningNow(reference);
      return meaning === 'inputRequired';
    });
    if (!isWaiting) return 'roundClosed';
    await hooks.beforeSend();
    const bytes = JSON.stringify({ action: reply.action, content: reply.content });
    const jsonRpcId = Number(wire['jsonRpcId']);
    return this.exchange(
      'answer',
      () => {
        if (word === 'lostBefore') throw new WireFault('Transient', 'the socket closed');
        if (word === 'refused') throw new WireFault('RefusedByServer', 'HTTP 422', { wireCode: 422 });
        this.ledger.answers.push({
          at: this.line.time.nowMs,
          jsonRpcId,
          remoteId: reference.remoteId,
          bytes,
        });
        const execution = this.find(reference);
        const open = execution.openQuestion();
        if (open?.jsonRpcId === jsonRpcId) execution.take(open, bytes, this.line.time.nowMs);
        if (word === 'lostAfter') throw new WireFault('Transient', 'the socket closed');
        return 'delivered';
      },
      hooks.afterSend,
    );
  }

  #meaningNow(reference: RemoteReference): string {
    try {
      const execution = this.find(reference);
      const isAsking = execution.openQuestion() !== null || execution.isLingering;
      return execution.ended ?? (isAsking ? 'inputRequired' : 'working');
    } catch (error) {
      if (WireFault.isInstance(error) && error.kind === 'NotFound') return 'unknown';
      throw error;
    }
  }

  cancel(
    _server: unknown,
    reference: RemoteReference,
    afterSend: () => Promise<void>,
  ): Promise<CancelAnswer> {
    return this.exchange(
      'cancel',
      (): CancelAnswer => {
        const { nowMs } = this.line.time;
        const word = this.next(this.faults.cancels, 'confirmed');
        this.ledger.cancels.push({ at: nowMs, remoteId: reference.remoteId });
        if (word === 'lostBefore') throw new WireFault('Transient', 'the socket closed');
        if (word === 'notFound') throw new WireFault('NotFound', 'JSON-RPC -32602', { wireCode: -32602 });
        if (word === 'refused' || word === 'unsupported') return word;
        const execution = this.find(reference);
        if (execution.ended !== null) return 'refused';
        if (word === 'acknowledged') {
          execution.cancelSoon(nowMs, this.plan.honours);
          return 'acknowledged';
        }
        execution.endAs('cancelled', nowMs);
        if (word === 'lostAfter') throw new WireFault('Transient', 'the socket closed');
        return 'confirmed';
      },
      afterSend,
    );
  }

  fetchResult(_server: unknown, reference: RemoteReference): Promise<FetchedResult> {
    return this.exchange('fetchResult', (): FetchedResult => {
      const word = this.next(this.faults.fetches, 'ok');
      if (word === 'transient') throw new WireFault('Transient', 'the result was cut');
      if (word === 'retryAfter') {
        throw new WireFault('Transient', 'HTTP 429', { retryAfterMs: this.plan.retryAfterMs });
      }
      if (word === 'violation') throw new WireFault('ProtocolViolation', 'about another task');
      if (word === 'sessionLost') this.lostSessions.add(sessionIdOf(reference.locator));
      if (word === 'notYet') return { kind: 'notYet' };
      return this.#fetch(reference);
    });
  }

  #fetch(reference: RemoteReference): FetchedResult {
    try {
      const execution = this.find(reference);
      if (execution.ended === null) return { kind: 'notYet' };
      if (this.isResultLost || execution.ended === 'cancelled')
        return { kind: 'lost', evidence: 'the result is gone' };
      return { kind: 'result', result: this.resultOf(execution) };
    } catch (error) {
      if (!WireFault.isInstance(error) || error.kind !== 'NotFound') throw error;
      return { kind: 'lost', evidence: 'the task is unknown' };
    }
  }

  async release(): Promise<void> {}
}
