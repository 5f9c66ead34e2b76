// Owns the answers to questions: which one an answer is for, and what becomes of the request that brings it.
// Must never give an answer to a question twice.

import type { ServerResponse } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import { isObject, type JsonObject } from './json.js';
import type { Arrival, Journal } from './journal.js';
import { closing, finish, sendStatus } from './replies.js';
import type { Session } from './sessions.js';
import { isInsteadOfHandling, OK, spell } from './words.js';

/** An answer is accepted whether or not anyone waits for it. */
export async function takeAnswer(
  message: JsonObject,
  session: Session,
  { journal, response, arrival }: { journal: Journal; response: ServerResponse; arrival: Arrival },
): Promise<void> {
  const { id } = message;
  const asked = typeof id === 'number' ? session.questions.get(id) : undefined;
  const answer = isObject(message['result']) ? message['result'] : (message['error'] ?? null);
  const { label = null, question = null } = asked ?? {};
  journal.write({ kind: 'answerReceived', label, question, answer }, arrival);
  const word = asked?.task.takeWord('answers') ?? OK;
  if (asked && word.name !== 'ok') {
    journal.write({ kind: 'faultPlayed', label: asked.label, phase: 'answers', word: spell(word) }, arrival);
  }
  if (asked && !asked.isAnswered && !isInsteadOfHandling(word)) {
    asked.isAnswered = true;
    asked.onAnswer(answer);
  }
  switch (word.name) {
    case 'reset':
      response.socket?.resetAndDestroy();
      return;
    case 'lose':
    case 'lost':
      response.destroy();
      return;
    case 'hang':
      return closing(response);
    case '429':
    case '503':
    case '504':
      return sendStatus(response, word);
    case 'error':
    case 'gone': {
      const error = { code: word.amount ?? -32602, message: `planned: ${word.name}` };
      response.writeHead(400, { 'content-type': 'application/json' });
      return finish(response, JSON.stringify({ jsonrpc: '2.0', id: id ?? null, error }));
    }
    case 'delay':
      await sleep(word.amount ?? 0);
      break;
    default:
      // The other words are for replies that say something; this one has nothing to say.
      break;
  }
  response.writeHead(202);
  return finish(response, '');
}
