// Owns the reading of one emitted declaration file: what it imports, exports and declares, and what a declaration refers to.
// Must never drop a statement that it does not know: it throws.

import { readFileSync } from 'node:fs';
import { parseAst } from 'vite';

export interface DeclarationFile {
  readonly imports: ReadonlyMap<string, Origin>;
  readonly exports: ReadonlyMap<string, Exported>;
  /** By name; overloads and merged declarations share one. */
  readonly declarations: ReadonlyMap<string, readonly Declaration[]>;
}

/** A name in another module, as the import says it. */
export interface Origin {
  readonly from: string;
  /** WHOLE_MODULE for `* as x`. */
  readonly name: string;
}

export const WHOLE_MODULE = '*';

export interface Exported {
  /** Null: declared or imported in this file. */
  readonly from: string | null;
  readonly name: string;
  readonly isTypeOnly: boolean;
}

export interface Declaration {
  readonly kind: 'class' | 'const' | 'function' | 'interface' | 'type';
  /** As callers see it: without comments and private members. */
  readonly text: string;
  /** Names this declaration uses, type parameters and globals among them: `a`, or `a.b` of `a.b.c`. */
  readonly uses: readonly string[];
  /** What it names by `import('…')`. */
  readonly inlineImports: readonly Origin[];
}

interface Node {
  readonly type: string;
  readonly start: number;
  readonly end: number;
  readonly [key: string]: unknown;
}

const KINDS: Readonly<Record<string, Declaration['kind']>> = {
  ClassDeclaration: 'class',
  FunctionDeclaration: 'function',
  TSDeclareFunction: 'function',
  TSInterfaceDeclaration: 'interface',
  TSTypeAliasDeclaration: 'type',
  VariableDeclaration: 'const',
};

export function readDeclarationFile(file: string): DeclarationFile {
  const text = withoutComments(readFileSync(file, 'utf8'));
  const { body } = parseAst(text, { lang: 'dts' }, file) as unknown as { body: Node[] };
  const imports = new Map<string, Origin>();
  const exports = new Map<string, Exported>();
  const declarations = new Map<string, Declaration[]>();
  for (const statement of body) {
    const declared = declarationIn(statement);
    if (statement.type === 'ImportDeclaration') readImports(statement, imports);
    else if (declared) {
      const declaration = readDeclaration(declared, text);
      for (const name of namesOf(declared)) {
        declarations.set(name, [...(declarations.get(name) ?? []), declaration]);
        if (declared !== statement) exports.set(name, { from: null, name, isTypeOnly: false });
      }
    } else if (statement.type === 'ExportNamedDeclaration') readExports(statement, exports);
    else throw new Error(`${file}: a ${statement.type} is not understood`);
  }
  return { imports, exports, declarations };
}

/** Strings are matched to be passed over: a comment may stand in one. */
function withoutComments(text: string): string {
  const strings = /'(?:[^'\\\n]|\\.)*'|"(?:[^"\\\n]|\\.)*"|`(?:[^`\\]|\\.)*`/.source;
  const either = new RegExp(`(${strings})|/\\*[^]*?\\*/|//[^\\n]*`, 'g');
  return text.replace(either, (_match, string?: string) => string ?? '');
}

function declarationIn(statement: Node): Node | null {
  if (statement.type in KINDS) return statement;
  const inner = statement.type === 'ExportNamedDeclaration' ? (statement.declaration as Node | null) : null;
  return inner && inner.type in KINDS ? inner : null;
}

function readImports(statement: Node, imports: Map<string, Origin>): void {
  const from = stringOf(statement.source);
  for (const specifier of statement.specifiers as Node[]) {
    imports.set(nameOf(specifier.local), { from, name: importedName(specifier) });
  }
}

function importedName(specifier: Node): string {
  if (specifier.type === 'ImportNamespaceSpecifier') return WHOLE_MODULE;
  return specifier.type === 'ImportDefaultSpecifier' ? 'default' : nameOf(specifier.imported);
}

function readExports(statement: Node, exports: Map<string, Exported>): void {
  if (statement.declaration) throw new Error(`a ${(statement.declaration as Node).type} is not understood`);
  const from = statement.source ? stringOf(statement.source) : null;
  for (const specifier of statement.specifiers as Node[]) {
    const isTypeOnly = statement.exportKind === 'type' || specifier.exportKind === 'type';
    exports.set(nameOf(specifier.exported), { from, name: nameOf(specifier.local), isTypeOnly });
  }
}

function namesOf(declared: Node): string[] {
  const declarators = declared.declarations as Node[] | undefined;
  return declarators ? declarators.map(({ id }) => nameOf(id)) : [nameOf(declared.id)];
}

function readDeclaration(declared: Node, text: string): Declaration {
  const uses = new Set<string>();
  const inlineImports: Origin[] = [];
  const hidden: Node[] = [];
  walk(declared, (node) => {
    if (isHidden(node)) {
      hidden.push(node);
      return false;
    }
    if (node.type === 'TSImportType') {
      const [name = WHOLE_MODULE] = path(node.qualifier);
      inlineImports.push({ from: stringOf(node.source), name });
    }
    const key = node.computed === true ? node.key : null;
    for (const used of [node.typeName, node.exprName, node.expression, node.superClass, key]) {
      const names = path(used);
      if (names.length > 0) uses.add(names.slice(0, 2).join('.'));
    }
    return true;
  });
  const kind = KINDS[declared.type];
  if (!kind) throw new Error(`a ${declared.type} is not understood`);
  return { kind, text: textWithout(hidden, declared, text), uses: [...uses], inlineImports };
}

/** A private constructor stays: whether callers can make one is theirs to know. */
function isHidden(node: Node): boolean {
  if ((node.key as Node | null | undefined)?.type === 'PrivateIdentifier') return true;
  return node.accessibility === 'private' && node.kind !== 'constructor';
}

function textWithout(hidden: readonly Node[], declared: Node, text: string): string {
  let shown = '';
  let from = declared.start;
  for (const { start, end } of hidden) {
    shown += text.slice(from, start);
    from = end;
  }
  shown += text.slice(from, declared.end);
  const lines = shown.split('\n').map((line) => line.trimEnd());
  return lines.filter((line) => line !== '').join('\n');
}

/** Goes down only where `enter` says so. */
function walk(node: Node, enter: (node: Node) => boolean): void {
  if (!enter(node)) return;
  for (const value of Object.values(node)) {
    for (const child of Array.isArray(value) ? (value as unknown[]) : [value]) {
      if (isNode(child)) walk(child, enter);
    }
  }
}

function isNode(value: unknown): value is Node {
  return typeof value === 'object' && value !== null && typeof (value as Node).type === 'string';
}

/** [a, b, c] of `a.b.c`; nothing where it is no such name. */
function path(value: unknown): string[] {
  if (!isNode(value)) return [];
  if (value.type === 'Identifier') return [nameOf(value)];
  return [...path(value.left ?? value.object), ...path(value.right ?? value.property)];
}

function nameOf(value: unknown): string {
  const { name } = value as { name?: unknown };
  if (typeof name !== 'string') throw new Error(`no name: ${JSON.stringify(value)}`);
  return name;
}

function stringOf(value: unknown): string {
  const { value: text } = value as { value?: unknown };
  if (typeof text !== 'string') throw new Error(`no string: ${JSON.stringify(value)}`);
  return text;
}
