// Owns the Prometheus metrics of a worker: counters from its events, gauges asked of the engine at each scrape.
// Must never be needed: a worker runs the same without. Labels are server, tool and words of our own tables only.

import type { Client } from '@temporalio/client';
import { Counter, Gauge, Histogram, Registry } from 'prom-client';
import type { OperationEvent } from '../activities/events.js';
import { OPERATION_STATES, TERMINAL_STATES } from '../operation/names.js';

export interface WorkerMetrics {
  /** Give it to `createToolOperationWorker({ onEvent })`. */
  readonly onEvent: (event: OperationEvent) => void;
  readonly registry: Registry;
}

const SECONDS_PER_MS = 1e-3;

/** @param client where given, operations by state and the oldest held one are asked of its visibility at each scrape */
export function createWorkerMetrics(client?: Client): WorkerMetrics {
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
  const faults = new Counter({
    name: 'dtc_step_faults_total',
    help: 'Attempts of steps that met a fault outside their contract and are tried again',
    labelNames: ['step'],
    registers,
  });
  if (client) addStateGauges(client, registry);
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
        case 'stepFault':
          return faults.inc({ step: event.step });
        default:
      }
    },
  };
}

/** Of the whole namespace, not of this worker: any one worker's scrape tells it. */
function addStateGauges(client: Client, registry: Registry): void {
  const open = OPERATION_STATES.filter((state) => !(TERMINAL_STATES as readonly string[]).includes(state));
  new Gauge({
    name: 'dtc_operations',
    help: 'Open operations by state',
    labelNames: ['state'],
    registers: [registry],
    async collect() {
      // GROUP BY is refused for custom attributes: one count per state.
      for (const state of open) {
        const { count } = await client.workflow.count(runningIn(state));
        this.set({ state }, count);
      }
    },
  });
  new Gauge({
    name: 'dtc_oldest_unresolved_seconds',
    help: 'Age of the oldest operation that is held, since its start; 0 where none is',
    registers: [registry],
    async collect() {
      let oldestAt: number | null = null;
      for await (const run of client.workflow.list({ query: runningIn('UNRESOLVED') })) {
        oldestAt = Math.min(oldestAt ?? Number.POSITIVE_INFINITY, run.startTime.getTime());
      }
      this.set(oldestAt === null ? 0 : (Date.now() - oldestAt) * SECONDS_PER_MS);
    },
  });
}

function runningIn(state: string): string {
  return `WorkflowType = 'toolOperation' AND ExecutionStatus = 'Running' AND OperationState = '${state}'`;
}
