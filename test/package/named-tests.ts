// Owns which tests docs/CASES.md and docs/PROTOCOLS.md name, and whether a name stands in its file and passed in a run.
// Must never take a test for proof that did not run, or did not pass, in the very run that is looked at.

/** A row of a document and one test, or set of tests, that it stands on. */
export interface NamedTest {
  readonly document: string;
  /** What a reader finds it by: the number of the row. */
  readonly row: string;
  readonly file: string;
  /** `case`: every test with the number at its head; `whole`: every test of the file; `title`: a test or a describe. */
  readonly by: 'case' | 'whole' | 'title';
  readonly text: string;
}

/** What is read of vitest's JSON report. */
export interface RunReport {
  readonly testResults: readonly {
    readonly name: string;
    readonly assertionResults: readonly {
      readonly ancestorTitles: readonly string[];
      readonly title: string;
      readonly status: string;
    }[];
  }[];
}

/** Tables of many rows, and files whose every test is about one number, name it in their first lines or not at all. */
const WHOLE_FILES: readonly string[] = ['cancel-matrix', 'kills', 'deploys', 'test/cli/replay.test.ts'];

export function namedInCases(text: string): readonly NamedTest[] {
  return text.split('\n').flatMap((line) => {
    const [, row = '', files = ''] = /^\| ([A-Z]\d) \| ([^|]*) \|/.exec(line) ?? [];
    return [...files.matchAll(/`([^`]+)`/g)].map(([, name = '']): NamedTest => {
      const file = name.endsWith('.ts') ? name : `test/integration/${name}.test.ts`;
      const by = WHOLE_FILES.includes(name) ? 'whole' : 'case';
      return { document: 'CASES.md', row, file, by, text: row };
    });
  });
}

export interface Clause {
  readonly number: string;
  readonly strength: string;
  readonly tests: readonly NamedTest[];
  /** Why no test is named; null where one is. */
  readonly reason: string | null;
  readonly line: string;
}

/** The rows `| number | clause | strength | covered by |`; a pipe inside a name is written `\|`. */
export function clausesIn(text: string): readonly Clause[] {
  return text.split('\n').flatMap((line) => {
    const cells = line.split(/(?<!\\)\|/).map((cell) => cell.trim().replaceAll('\\|', '|'));
    const [, number = '', , strength = '', covered = ''] = cells;
    if (!/^[A-Z]\d+$/.test(number)) return [];
    const tests = [...covered.matchAll(/`(test\/[^`]+\.test\.ts): "((?:[^"\\]|\\")*)"`/g)].map(
      ([, file = '', name = '']): NamedTest => {
        const title = name.replaceAll('\\"', '"');
        return { document: 'PROTOCOLS.md', row: number, file, by: 'title', text: title };
      },
    );
    const reason = covered.startsWith('— ') ? covered.slice(2) : null;
    return [{ number, strength, tests, reason, line }];
  });
}

/** Where the contract leads a name. */
const LED_BY = '(?:on (?:\\$\\{contract\\}|%s) )?';
const CASE_HEAD = (number: string): string => `(?:[A-Z]\\d, )*${number}(?:, [A-Z]\\d)*: `;

/** The name stands in the file as the whole of one string (templates of `each` as they are written). */
export function isWrittenIn(source: string, { by, text }: NamedTest): boolean {
  if (by === 'whole') return true;
  if (by === 'case') return new RegExp(`['"\`]${LED_BY}${CASE_HEAD(text)}`).test(source);
  return [`'${text.replaceAll("'", "\\'")}'`, `"${text}"`, `\`${text}\``].some((spelt) =>
    source.includes(spelt),
  );
}

/** A sentence for each named test that did not run and pass in the run of this report. */
export function unprovedIn(report: RunReport, named: readonly NamedTest[]): readonly string[] {
  return named.flatMap((name) => {
    const tests = report.testResults
      .filter((file) => file.name.replaceAll('\\', '/').endsWith(`/${name.file}`))
      .flatMap(({ assertionResults }) => assertionResults)
      .filter(({ ancestorTitles, title }) => isNamedBy(name, [...ancestorTitles, title]));
    const broken = tests.filter(({ status }) => status !== 'passed');
    const said = `docs/${name.document} ${name.row}: ${name.file}: "${name.text}"`;
    if (tests.length === 0) return [`${said} did not run`];
    return broken.map(({ title, status }) => `${said}: "${title}" is ${status}`);
  });
}

function isNamedBy({ by, text }: NamedTest, titles: readonly string[]): boolean {
  if (by === 'whole') return true;
  const pattern = by === 'case' ? `(?:^| )${CASE_HEAD(text)}` : `^${patternOf(text)}$`;
  return by === 'case'
    ? new RegExp(pattern).test(titles.join(' '))
    : titles.some((title) => new RegExp(pattern, 's').test(title));
}

/** Where `each` puts a value into a title: `%s` and its kin, `$name`, `${word}`. */
const VALUE = /%[sdifjoO]|\$\{[^}]*\}|\$[A-Za-z][\w.]*/g;

function patternOf(template: string): string {
  return template
    .split(VALUE)
    .map((literal) => literal.replaceAll(/[.*+?^${}()|[\]\\]/g, '\\$&'))
    .join('.*');
}

/** A template that is all value would be proved by any test of its file. */
export function saysSomething({ text }: NamedTest): boolean {
  return text.replaceAll(VALUE, '').trim().length >= 2;
}
