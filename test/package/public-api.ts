// Owns the text of the public API: what each entry of the package exports, and all declarations of ours that its types reach.
// Must never follow a type into another package: it is named, and pinned by that package's version.

import { readFileSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';
import {
  type Declaration,
  type DeclarationFile,
  type Origin,
  readDeclarationFile,
  WHOLE_MODULE,
} from './declaration-file.js';

export interface ApiEntry {
  /** As people import it. */
  readonly specifier: string;
  /** Absolute; null where the entry is no module. */
  readonly module: string | null;
  readonly names: readonly ApiName[];
}

export interface ApiName {
  readonly name: string;
  readonly kind: Declaration['kind'] | 'reexport';
  /** Whether the built module gives something under this name. */
  readonly isValue: boolean;
  /** The file that declares it, or the package. */
  readonly home: string;
}

export interface PublicApi {
  readonly entries: readonly ApiEntry[];
  readonly text: string;
}

/** Kinds that are gone at run time. */
const TYPES_ONLY: readonly string[] = ['interface', 'type'];

interface Found {
  readonly file: string;
  readonly name: string;
  readonly declarations: readonly Declaration[];
}

interface Manifest {
  readonly name: string;
  readonly exports: Readonly<Record<string, string | { readonly types: string; readonly default: string }>>;
}

export function readPublicApi(root: string): PublicApi {
  const manifest = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as Manifest;
  const reader = new ApiReader(root);
  const entries = Object.entries(manifest.exports).map(([path, target]): ApiEntry => {
    const specifier = manifest.name + path.slice(1);
    if (typeof target === 'string') return { specifier, module: null, names: [] };
    return {
      specifier,
      module: join(root, target.default),
      names: reader.namesOf(join(root, target.types)),
    };
  });
  return { entries, text: `${render(entries, reader.reached())}\n` };
}

class ApiReader {
  readonly #root: string;
  readonly #files = new Map<string, DeclarationFile>();
  readonly #reached = new Map<string, Found>();

  constructor(root: string) {
    this.#root = root;
  }

  namesOf(file: string): ApiName[] {
    const names = [...this.#read(file).exports].map(([name, { isTypeOnly }]): ApiName => {
      const found = this.#find(file, name);
      if (typeof found === 'string') return { name, kind: 'reexport', isValue: !isTypeOnly, home: found };
      this.#reach(found);
      const kind = found.declarations[0]?.kind ?? 'reexport';
      const isValue = !isTypeOnly && !TYPES_ONLY.includes(kind);
      return { name, kind, isValue, home: this.#homeOf(found.file) };
    });
    return names.toSorted((a, b) => compare(a.name, b.name));
  }

  /** By file and name. */
  reached(): [home: string, declarations: string[]][] {
    const byHome = new Map<string, Found[]>();
    for (const found of this.#reached.values()) {
      const home = this.#homeOf(found.file);
      byHome.set(home, [...(byHome.get(home) ?? []), found]);
    }
    return [...byHome]
      .toSorted(([a], [b]) => compare(a, b))
      .map(([home, all]) => [
        home,
        all
          .toSorted((a, b) => compare(a.name, b.name))
          .map((found) => found.declarations.map(({ text }) => text).join('\n')),
      ]);
  }

  #reach(found: Found): void {
    const key = `${found.file} ${found.name}`;
    if (this.#reached.has(key)) return;
    this.#reached.set(key, found);
    const { imports, declarations } = this.#read(found.file);
    for (const { uses, inlineImports } of found.declarations) {
      for (const use of uses) {
        const [name = '', inside] = use.split('.');
        const origin = imports.get(name);
        if (origin?.name === WHOLE_MODULE && inside)
          this.#reachOrigin(found.file, { ...origin, name: inside });
        // Anything else is a type parameter or a global.
        else if (origin || declarations.has(name)) this.#reachName(found.file, name);
      }
      for (const origin of inlineImports) this.#reachOrigin(found.file, origin);
    }
  }

  #reachOrigin(file: string, { from, name }: Origin): void {
    if (from.startsWith('.')) this.#reachName(besides(file, from), name);
  }

  #reachName(file: string, name: string): void {
    const found = this.#find(file, name);
    if (typeof found !== 'string') this.#reach(found);
  }

  /** @returns where that name is declared, or the package that it comes from */
  #find(file: string, name: string): Found | string {
    const { imports, exports, declarations } = this.#read(file);
    const declared = declarations.get(name);
    if (declared) return { file, name, declarations: declared };
    const exported = exports.get(name);
    if (exported?.from === null && exported.name !== name) return this.#find(file, exported.name);
    const origin = imports.get(name) ?? exported;
    if (!origin?.from) throw new Error(`${file} does not say what ${name} is`);
    return origin.from.startsWith('.') ? this.#find(besides(file, origin.from), origin.name) : origin.from;
  }

  #read(file: string): DeclarationFile {
    const known = this.#files.get(file);
    if (known) return known;
    const read = readDeclarationFile(file);
    this.#files.set(file, read);
    return read;
  }

  #homeOf(file: string): string {
    return relative(join(this.#root, 'dist'), file).replace(/\.d\.ts$/, '');
  }
}

function besides(file: string, specifier: string): string {
  return join(dirname(file), specifier.replace(/\.js$/, '.d.ts'));
}

/** Not by locale: the order must be the same on every machine. */
function compare(a: string, b: string): number {
  return a < b ? -1 : Number(a > b);
}

function render(entries: readonly ApiEntry[], reached: readonly [string, string[]][]): string {
  const lines = [
    '# Public API',
    '',
    'What each entry of the package exports, then every declaration of ours that its types reach, without comments and private',
    'members. A change here is a change for callers. `DTC_UPDATE_API=1 npx vitest run test/package` writes it from `dist/`.',
  ];
  for (const { specifier, module, names } of entries) {
    lines.push('', `## \`${specifier}\``, '');
    if (module === null) lines.push('A file, as it is.');
    for (const { name, kind, isValue, home } of names) {
      const limit = isValue || TYPES_ONLY.includes(kind) ? '' : ', its type only';
      lines.push(`- \`${name}\`: ${kind}${limit}, in ${home}`);
    }
  }
  for (const [home, declarations] of reached) {
    lines.push('', `## In ${home}`, '', '```ts', declarations.join('\n\n'), '```');
  }
  return lines.join('\n');
}
