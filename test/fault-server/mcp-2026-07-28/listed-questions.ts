// Owns how MCP 2026-07-28 asks: all open questions of a task, by key, in each of its statuses.
// Must never take the answer to a key twice, nor make a fuss about one: what is unknown or answered is ignored.

import { isObject, type JsonObject, type JsonValue } from '../json.js';
import type { Arrival, Journal } from '../journal.js';
import type { Task } from '../tasks.js';
import { ELICITATION, elicitationOf } from '../wire.js';

// The same keys on every task: they are unique within one only.
const keyOf = (question: number): string => `question-${question}`;

export class ListedQuestions {
  private readonly task: Task;
  private readonly journal: Journal;
  /** By key, how many more statuses list it although it is answered. */
  private readonly repeats = new Map<string, number>();

  constructor(task: Task, journal: Journal) {
    this.task = task;
    this.journal = journal;
  }

  /** The `inputRequests` of one status that says `input_required`. */
  list(arrival: Arrival): JsonObject {
    const { label } = this.task.order;
    const listed: [string, JsonObject][] = [];
    for (const asked of this.task.questions.open) {
      const { question } = asked;
      const inputKey = keyOf(question);
      const left = this.repeats.get(inputKey) ?? 0;
      if (asked.isAnswered && left === 0) continue;
      if (asked.isAnswered) this.repeats.set(inputKey, left - 1);
      if (!asked.isHandedOut)
        this.journal.write({ kind: 'questionHandedOut', label, question, inputKey }, arrival);
      asked.isHandedOut = true;
      listed.push([inputKey, { method: ELICITATION, params: elicitationOf(label, question) }]);
    }
    return Object.fromEntries(listed);
  }

  /** Each answer is in the journal, whether or not it is for a question that is open. */
  hear(responses: JsonValue | undefined, arrival: Arrival): readonly (() => void)[] {
    const { label, plan } = this.task.order;
    return Object.entries(isObject(responses) ? responses : {}).map(([key, given]) => {
      const answer = given ?? null;
      const asked = this.task.questions.open.find(({ question }) => keyOf(question) === key);
      const question = asked?.question ?? null;
      this.journal.write({ kind: 'answerReceived', label, question, answer }, arrival);
      return () => {
        if (!asked || asked.isAnswered) return;
        this.repeats.set(key, plan.questionReplays);
        asked.answer(answer);
      };
    });
  }
}
