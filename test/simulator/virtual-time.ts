// Owns the clock of a simulated world: what happens when, in one order that a seed fixes.
// Must never read a real clock; one event is finished, with all that follows from it at once, before the next begins.

interface Due {
  readonly atMs: number;
  readonly turn: number;
  /** Null once it was taken back. */
  act: (() => void | Promise<void>) | null;
}

export interface Planned {
  takeBack(): void;
}

const START_MS = 1_700_000_000_000;

export class VirtualTime {
  #nowMs = START_MS;
  #turn = 0;
  #eventsLeft = Number.POSITIVE_INFINITY;
  readonly #heap: Due[] = [];

  get nowMs(): number {
    return this.#nowMs;
  }

  /** A world that goes round in circles fails instead of running for ever. */
  allow(events: number): void {
    this.#eventsLeft = events;
  }

  at(atMs: number, act: () => void | Promise<void>): Planned {
    const due: Due = { atMs: Math.max(atMs, this.#nowMs), turn: (this.#turn += 1), act };
    push(this.#heap, due);
    return { takeBack: () => (due.act = null) };
  }

  after(delayMs: number, act: () => void | Promise<void>): Planned {
    return this.at(this.#nowMs + delayMs, act);
  }

  sleep(delayMs: number): Promise<void> {
    return new Promise((resolve) => this.after(delayMs, resolve));
  }

  /** Lets one event happen. False where none is due before `untilMs`; then the clock stands at `untilMs`. */
  async next(untilMs: number): Promise<boolean> {
    while (this.#heap[0]?.act === null) pop(this.#heap);
    const due = this.#heap[0];
    if (!due?.act || due.atMs > untilMs) {
      this.#nowMs = Math.max(this.#nowMs, untilMs);
      return false;
    }
    if ((this.#eventsLeft -= 1) < 0) throw new Error('the world goes on without end');
    pop(this.#heap);
    this.#nowMs = due.atMs;
    await due.act();
    await quiet();
    return true;
  }

  /** For replays: what happened at another time happens there once more. */
  async pretend<T>(atMs: number, act: () => Promise<T>): Promise<T> {
    const nowMs = this.#nowMs;
    this.#nowMs = atMs;
    try {
      return await act();
    } finally {
      this.#nowMs = nowMs;
    }
  }
}

/** Every promise that can go on has gone on: nothing in these worlds waits for real I/O. */
export function quiet(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}

function isSooner(a: Due, b: Due): boolean {
  return a.atMs < b.atMs || (a.atMs === b.atMs && a.turn < b.turn);
}

function push(heap: Due[], due: Due): void {
  let place = heap.push(due) - 1;
  while (place > 0) {
    const above = (place - 1) >> 1;
    const parent = heap[above] as Due;
    if (!isSooner(due, parent)) break;
    heap[place] = parent;
    place = above;
  }
  heap[place] = due;
}

function pop(heap: Due[]): void {
  const last = heap.pop();
  if (!last || heap.length === 0) return;
  let place = 0;
  for (;;) {
    let child = 2 * place + 1;
    if (child >= heap.length) break;
    if (child + 1 < heap.length && isSooner(heap[child + 1] as Due, heap[child] as Due)) child += 1;
    if (!isSooner(heap[child] as Due, last)) break;
    heap[place] = heap[child] as Due;
    place = child;
  }
  heap[place] = last;
}

/** While `act` runs, `Date.now` is the virtual clock, and heartbeats (a step's only interval) are left to the engine. */
export async function inVirtualTime<T>(time: VirtualTime, act: () => Promise<T>): Promise<T> {
  const { now } = Date;
  const interval = globalThis.setInterval;
  Date.now = () => time.nowMs;
  globalThis.setInterval = (() => undefined) as unknown as typeof setInterval;
  try {
    return await act();
  } finally {
    Date.now = now;
    globalThis.setInterval = interval;
  }
}
