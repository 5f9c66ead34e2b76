// Owns the twins that hear or say something else than the model server said or heard, as a careless adapter would.
// Must never change the server's ledger, which the judge believes.

import { WireFault } from '../../protocols/adapter.js';
import { PLAIN } from './scripts.js';
import { script, type Twin } from './twins.js';

export const TWINS_OF_THE_SERVER: readonly Twin[] = [
  {
    rule: 'the interval of the server is kept',
    script: {
      ...PLAIN,
      plan: { ...PLAIN.plan, phases: [{ kind: 'work', forMs: 60_000 }], hintsMs: [20_000] },
    },
    breaks: (_, { server }) => {
      const observe = server.observe.bind(server);
      server.observe = async (...args) => ({ ...(await observe(...args)), intervalMs: null });
      return {};
    },
    noticed: /looked again after/,
  },
  {
    rule: 'work that is there is found',
    script: PLAIN,
    breaks: (_, { server }) => {
      server.observe = () => Promise.reject(new WireFault('NotFound', 'never heard of it'));
      return {};
    },
    noticed: /held for no reason: handle-lost/,
  },
  {
    rule: 'a reply is sent as it was given',
    script: script('a question'),
    breaks: (_, { server }) => {
      const answer = server.answer.bind(server);
      server.answer = (to, reference, wire, reply, hooks) =>
        answer(to, reference, wire, { ...reply, content: { year: 1 } }, hooks);
      return {};
    },
    noticed: /was answered with what nobody said/,
  },
  {
    rule: 'a reply that is told to be applied was sent',
    script: script('a question'),
    breaks: (_, { server }) => {
      server.answer = async () => 'delivered';
      return {};
    },
    noticed: /told applied, the server took null/,
  },
];
