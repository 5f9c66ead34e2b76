// Owns `find`: which call a remote task or a submission key belongs to. Must never need an engine.

import { CommandError, EXIT_CODES } from '../exit-codes.js';
import { type Place, withReader } from '../open-place.js';
import { printable } from '../printable.js';
import { writeJson } from '../report.js';
import { layoutOf } from '../state-directory.js';

export interface FindOptions extends Place {
  readonly task?: string;
  readonly key?: string;
  readonly json: boolean;
}

/** @returns 0, one call node per line. @throws CommandError where there is none */
export function runFind(options: FindOptions): Promise<number> {
  const { task, key } = options;
  if ((task === undefined) === (key === undefined))
    throw new CommandError('give either --task ID or --key KEY');
  return withReader(options, async (reader) => {
    const found =
      task === undefined
        ? await reader?.find(key ?? '', 'submissionKey')
        : await reader?.find(task, 'remoteId');
    if (!found || found.length === 0) {
      const what = task === undefined ? `the submission key "${key}"` : `the remote task "${task}"`;
      throw new CommandError(`no operation in ${layoutOf(options.stateDir).path} has ${what}`);
    }
    if (options.json) writeJson({ schema: 'foundOperations.v1', callNodeIds: found });
    else process.stdout.write(`${found.map(printable).join('\n')}\n`);
    return EXIT_CODES.completed;
  });
}
