// Owns the proof that what people see says what is known, and that a stranger's text cannot steer a terminal.

import { describe, expect, test } from 'vitest';
import { createProgress } from '../../cli/progress.js';
import { printable } from '../../cli/printable.js';
import { progressLine, resultText, viewLines } from '../../cli/render-view.js';
import { emptyView, type OperationView } from '../../client/view.js';

const run = { callNodeId: 'node-1', workflowId: 'tool-operation/node-1', runId: 'run-1' };
const working: OperationView = {
  ...emptyView(run, 'WORKING'),
  server: 'search',
  tool: 'find',
  adapter: 'mcp/2025-11-25',
  remoteStatus: 'working',
  statusMessage: 'Gathering',
  polls: 3,
};

describe('view', () => {
  test('an open operation shows its state, what the far side says, and its run', () => {
    const text = viewLines(working).join('\n');
    expect(text).toMatch(/^WORKING {2}search\/find {2}node-1\n/);
    expect(text).toContain('working: Gathering [mcp/2025-11-25]');
    expect(text).toContain('tool-operation/node-1 run-1');
    expect(text).not.toContain('receipt');
  });

  test('a held operation shows reason and evidence', () => {
    const held = {
      ...working,
      state: 'UNRESOLVED' as const,
      reason: 'expired',
      evidence: 'tasks/get: -32602',
    };
    const text = viewLines(held).join('\n');
    expect(text).toContain('expired');
    expect(text).toContain('tasks/get: -32602');
  });

  test('an open question is shown with its deadline', () => {
    const question = {
      mode: 'url' as const,
      message: 'Sign in',
      schema: null,
      url: 'https://example.test/go',
    };
    const asking = { ...working, pendingInput: [{ roundId: 'r', question, deadlineAt: 0 }] };
    expect(viewLines(asking).join('\n')).toContain(
      'Sign in https://example.test/go (until 1970-01-01T00:00:00Z)',
    );
  });

  test('a missing worker is told with the time since', () => {
    expect(progressLine({ ...working, waitingForWorkerSince: 0 })).toContain(
      'waits for a worker since 1970-01-01',
    );
  });
});

describe('result', () => {
  test('texts are read as text, other content by its kind and size', () => {
    const value = {
      content: [
        { type: 'text', text: 'one' },
        { type: 'image', mimeType: 'image/png', data: 'AAAA' },
      ],
    };
    expect(resultText(value)).toBe('one\n[image image/png, 4 base64 characters; see --json]');
  });

  test('structured content without text is shown as JSON', () => {
    expect(resultText({ content: [], structuredContent: { a: 1 } })).toContain('"a": 1');
  });

  test('a protocol error is shown as JSON', () => {
    expect(JSON.parse(resultText({ code: -32603, message: 'no' }))).toEqual({ code: -32603, message: 'no' });
  });
});

test('control characters of a stranger do not reach the terminal', () => {
  expect(printable('a\u001b]0;title\u0007b\u202Ec\r\nd\te')).toBe('a]0;titlebc\nd\te');
  expect(viewLines({ ...working, statusMessage: 'x\u001b[2Jy\nz' }).join('|')).toContain('x[2Jy z');
});

describe('progress', () => {
  function recorder(isTTY: boolean) {
    const written: string[] = [];
    return { written, stream: { isTTY, columns: 40, write: (text: string) => written.push(text) } };
  }

  test('elsewhere than on a terminal each change is one plain line', () => {
    const { written, stream } = recorder(false);
    const progress = createProgress(stream);
    progress.show(working);
    progress.show(working);
    progress.show({ ...working, polls: 4 });
    progress.end();
    expect(written).toHaveLength(2);
    expect(written.join('')).not.toContain('\u001b');
  });

  test('on a terminal one line changes and never wraps', () => {
    const { written, stream } = recorder(true);
    const progress = createProgress(stream);
    progress.show({ ...working, statusMessage: 'long '.repeat(40) });
    progress.show({ ...working, polls: 4 });
    expect(written[0]?.length).toBeLessThan(40);
    expect(written[1]).toBe('\r\u001b[2K');
    expect(written.join('')).not.toContain('\n');
  });

  test('while a question is asked nothing is written, and notes come after it', () => {
    const { written, stream } = recorder(true);
    const progress = createProgress(stream);
    progress.pause();
    progress.show(working);
    progress.note('later');
    expect(written).toEqual([]);
    progress.resume();
    expect(written[0]).toBe('later\n');
    expect(written[1]).toContain('WORKING');
  });
});
