// Owns telling of every exchange with a tool server, without the adapters knowing.
// Must never change an answer or an error.

import type { OperationEvent } from '../activities/events.js';
import { type ProtocolRegistry, type ToolAdapter, WireFault } from '../protocols/adapter.js';

export function observedRegistry(
  registry: ProtocolRegistry,
  tell: (event: OperationEvent) => void,
  callNodeIdInProgress: () => string | null,
): ProtocolRegistry {
  const timed = async <T>(server: string, call: string, exchange: () => Promise<T>): Promise<T> => {
    const beganAt = performance.now();
    const callNodeId = callNodeIdInProgress();
    const done = (result: string): void => {
      const durationMs = Math.round(performance.now() - beganAt);
      tell({ kind: 'wireCall', callNodeId, server, call, result, durationMs });
    };
    try {
      const answer = await exchange();
      done('ok');
      return answer;
    } catch (error) {
      done(WireFault.isInstance(error) ? error.kind : 'error');
      throw error;
    }
  };
  return {
    negotiate: (server, ...rest) =>
      timed(server.name, 'negotiate', () => registry.negotiate(server, ...rest)),
    adapter: (name) => {
      const inner = registry.adapter(name);
      const observed: ToolAdapter = {
        name: inner.name,
        submit: (call, ...rest) => timed(call.server.name, 'submit', () => inner.submit(call, ...rest)),
        findBySubmission: (call, ...rest) =>
          timed(call.server.name, 'findBySubmission', () => inner.findBySubmission(call, ...rest)),
        observe: (server, ...rest) => timed(server.name, 'observe', () => inner.observe(server, ...rest)),
        renewSession: (server, ...rest) =>
          timed(server.name, 'renewSession', () => inner.renewSession(server, ...rest)),
        anchor: (server, ...rest) => timed(server.name, 'anchor', () => inner.anchor(server, ...rest)),
        pickUpQuestions: (server, ...rest) =>
          timed(server.name, 'pickUpQuestions', () => inner.pickUpQuestions(server, ...rest)),
        answer: (server, ...rest) => timed(server.name, 'answer', () => inner.answer(server, ...rest)),
        cancel: (server, ...rest) => timed(server.name, 'cancel', () => inner.cancel(server, ...rest)),
        fetchResult: (server, ...rest) =>
          timed(server.name, 'fetchResult', () => inner.fetchResult(server, ...rest)),
        release: (server, ...rest) => timed(server.name, 'release', () => inner.release(server, ...rest)),
      };
      return observed;
    },
  };
}
