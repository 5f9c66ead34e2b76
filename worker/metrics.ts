// Owns the Prometheus counters of a worker, made of its events; the public entry `durable-tool-calls/metrics`.
// Must never be needed: a worker runs the same without. Labels are server, tool and words of our own tables only.

import { Counter, Histogram, Registry } from 'prom-client';
import type { OperationEvent } from '../activities/events.js';
import { ACTIVITIES } from '../operation/names.js';

export { addOperationGauges, type OperationSources } from './operation-gauges.js';

export interface WorkerMetrics {
  /** Give it to `createToolOperationWorker({ onEvent })`. */
  readonly onEvent: (event: OperationEvent) => void;
  readonly registry: Registry;
}

const SECONDS_PER_MS = 1e-3;

/** Gauges are added with `addOperationGauges`. */
export function createWorkerMetrics(): WorkerMetrics {
  const registry = new Registry();
  const registers = [registry];
  const polls = new Counter({
    name: 'dtc_polls_total',
    help: 'Looks at remote operations, by what came of them (ok, or the kind of the fault)',
    labelNames: ['server', 'result'],
    registers,
  });
  const wireSeconds = new Histogram({
    name: 'dtc_wire_seconds',
    help: 'Duration of exchanges with tool servers',
    labelNames: ['server', 'call', 'result'],
    buckets: [0.01, 0.05, 0.1, 0.5, 1, 5, 30, 60],
    registers,
  });
  const accepted = new Counter({
    name: 'dtc_accepted_total',
    help: 'Receipts seen by this worker, by outcome',
    labelNames: ['server', 'tool', 'outcome'],
    registers,
  });
  const cancelSeconds = new Histogram({
    name: 'dtc_cancel_seconds',
    help: 'From the request to cancel to the receipt, by outcome',
    labelNames: ['server', 'outcome'],
    buckets: [0.5, 1, 2, 5, 15, 60, 300, 900],
    registers,
  });
  const refused = new Counter({
    name: 'dtc_refused_total',
    help: 'Refusals: submissions by servers or checks, replies by schemas, acceptances by the store',
    labelNames: ['server', 'what', 'reason'],
    registers,
  });
  const remarks = new Counter({
    name: 'dtc_remarks_total',
    help: 'Oddities of tools that nothing was decided by: a changed descriptor, work that cannot be cancelled',
    labelNames: ['server', 'tool', 'what'],
    registers,
  });
  const faults = new Counter({
    name: 'dtc_step_faults_total',
    help: 'Attempts of steps that met a fault outside their contract and are tried again',
    labelNames: ['step'],
    registers,
  });
  // A counter that appears with its first fault shows no increase.
  for (const step of Object.values(ACTIVITIES)) faults.inc({ step }, 0);
  return {
    registry,
    onEvent: (event) => {
      switch (event.kind) {
        case 'wireCall': {
          const { server, call, result } = event;
          if (call === 'observe') polls.inc({ server, result });
          return wireSeconds.observe({ server, call, result }, event.durationMs * SECONDS_PER_MS);
        }
        case 'accepted': {
          const { server, tool, outcome } = event;
          accepted.inc({ server, tool, outcome });
          if (event.cancelLatencyMs === null) return;
          return cancelSeconds.observe({ server, outcome }, event.cancelLatencyMs * SECONDS_PER_MS);
        }
        case 'refused':
          return refused.inc({ server: event.server, what: event.what, reason: event.reason });
        case 'remarked':
          return remarks.inc({ server: event.server, tool: event.tool, what: event.what });
        case 'stepFault':
          return faults.inc({ step: event.step });
        default:
      }
    },
  };
}
