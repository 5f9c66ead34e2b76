// Owns what a waiting person sees: one line that changes on a terminal, plain lines on change elsewhere.
// Must never write to standard output, nor over a question that is being asked.

import type { OperationView } from '../client/view.js';
import { oneLine } from './printable.js';
import { progressLine } from './render-view.js';

export interface ProgressStream {
  readonly isTTY?: boolean;
  readonly columns?: number;
  write(text: string): unknown;
}

export interface Progress {
  show(view: OperationView): void;
  /** A line that stays. The same line twice in a row is written once. */
  readonly note: (line: string) => void;
  /** Until `resume` nothing is written: the terminal belongs to a question. */
  pause(): void;
  resume(): void;
  /** Takes the changing line away. */
  end(): void;
}

const CLEAR_LINE = '\r\u001b[2K';

export function createProgress(stream: ProgressStream): Progress {
  const isLive = stream.isTTY === true;
  let shown = '';
  let lastNote = '';
  let isPaused = false;
  const held: string[] = [];

  const clear = (): void => {
    if (isLive && shown !== '') stream.write(CLEAR_LINE);
  };
  const draw = (): void => {
    if (shown === '') return;
    stream.write(isLive ? shown.slice(0, Math.max(10, (stream.columns ?? 80) - 1)) : `${shown}\n`);
  };
  return {
    show(view) {
      const line = progressLine(view);
      if (line === shown) return;
      if (!isPaused) clear();
      shown = line;
      if (!isPaused) draw();
    },
    note(text) {
      const line = oneLine(text);
      if (line === lastNote) return;
      lastNote = line;
      if (isPaused) {
        held.push(line);
        return;
      }
      clear();
      stream.write(`${line}\n`);
      if (isLive) draw();
    },
    pause() {
      clear();
      isPaused = true;
    },
    resume() {
      isPaused = false;
      for (const line of held.splice(0)) stream.write(`${line}\n`);
      if (isLive) draw();
    },
    end() {
      clear();
      shown = '';
    },
  };
}
