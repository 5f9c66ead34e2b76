/**
 * Owns: which room may import which (docs/ARCHITECTURE.md, "Rooms"), checked on dist/. Type-only imports are gone
 * there, so what is listed is what runs. Must never allow an upward import to make a change easier.
 */
'use strict';

const npm = 'node_modules';
const anyRoom =
  '^dist/(cli|server|client|worker|workflows|activities|protocols|receipts|primitives|operation)/';

/** The Node bindings of what the pure core takes as parameters: for every room but the core and the workflow bundle. */
const PRIMITIVES = '^dist/primitives/';

/** A room and all it may import at run time from inside this repository (its own folder is always allowed). */
const room = (name, mayImport, why) => ({
  name: `${name}-imports`,
  comment: why,
  severity: 'error',
  from: { path: `^dist/${name}/` },
  to: { path: '^dist/', pathNot: [`^dist/${name}/`, ...mayImport] },
});

module.exports = {
  forbidden: [
    {
      name: 'no-circular',
      comment: 'Two modules that need each other are one module, or miss a third.',
      severity: 'error',
      from: {},
      to: { circular: true },
    },
    {
      name: 'not-to-unresolvable',
      comment: 'A path that resolves to nothing fails only when that line runs.',
      severity: 'error',
      from: { path: '^dist/' },
      to: { couldNotResolve: true },
    },
    room(
      'cli',
      [PRIMITIVES, '^dist/(client|worker|receipts|server)/'],
      'The command line is thin: it talks to the rooms that own the work; of operation it sees types only.',
    ),
    room(
      'server',
      [PRIMITIVES, '^dist/(client|operation|receipts)/'],
      'Durable tasks for tool authors use the public client.',
    ),
    room(
      'client',
      [PRIMITIVES, '^dist/(operation|workflows)/'],
      'Needs only a Temporal client: no store, no adapters.',
    ),
    room(
      'worker',
      [PRIMITIVES, '^dist/(activities|protocols|receipts|operation)/'],
      'Registers workflows by path only; importing them would run workflow code outside its sandbox.',
    ),
    room(
      'workflows',
      ['^dist/operation/'],
      'Workflow code is replayed: only the pure core may decide in it.',
    ),
    room(
      'activities',
      [
        PRIMITIVES,
        '^dist/operation/',
        '^dist/protocols/adapter\\.js$',
        '^dist/receipts/(store|store-port|port)\\.js$',
      ],
      'Step bodies see ports, so that the simulator runs the very same bodies.',
    ),
    room(
      'protocols',
      [PRIMITIVES, '^dist/operation/'],
      'Adapters know wire contracts, nothing of engine or store.',
    ),
    room(
      'receipts',
      [PRIMITIVES, '^dist/operation/'],
      'The store knows the record, nothing of engine or wire.',
    ),
    room('primitives', ['^dist/operation/'], 'Bindings for the core, nothing of engine, store or wire.'),
    room('operation', [], 'The pure core imports nothing.'),
    {
      name: 'operation-is-pure',
      comment: 'No Node built-in and no npm package: clock, randomness and SHA-256 are parameters.',
      severity: 'error',
      from: { path: '^dist/operation/' },
      to: { pathNot: '^dist/operation/' },
    },
    {
      name: 'no-sibling-contract',
      comment:
        'One folder per wire contract; what two share lives in protocols/mcp/, protocols/credentials/ or directly in protocols/.',
      severity: 'error',
      from: { path: '^dist/protocols/([^/]+)/' },
      to: { path: '^dist/protocols/[^/]+/', pathNot: '^dist/protocols/($1|mcp|credentials)/' },
    },
    {
      name: 'workflow-bundle',
      comment: 'What is not one of these two packages breaks determinism or swells every worker.',
      severity: 'error',
      from: { path: '^dist/workflows/' },
      to: { path: npm, pathNot: `${npm}/@temporalio/(workflow|common)/` },
    },
    {
      name: 'workflow-no-builtins',
      comment: 'The workflow sandbox has no Node built-ins.',
      severity: 'error',
      from: { path: '^dist/workflows/' },
      to: { dependencyTypes: ['core'] },
    },
    {
      name: 'client-is-light',
      comment: 'An orchestrator that only starts operations must not load a native module.',
      severity: 'error',
      from: { path: '^dist/client/' },
      to: { path: `${npm}/(@temporalio/(worker|core-bridge|activity)|better-sqlite3|kysely)/` },
    },
    {
      name: 'oracle-is-independent',
      comment: 'An oracle that shares code with the machine agrees with its bugs.',
      severity: 'error',
      from: { path: '^dist/test/.*oracle' },
      to: { path: '^dist/operation/' },
    },
    {
      name: 'rooms-not-to-tests',
      comment: 'Shipped code never reaches into tests, scripts, benches or examples.',
      severity: 'error',
      from: { path: anyRoom },
      to: { path: '^dist/(test|scripts|bench|examples)/' },
    },
    {
      name: 'no-dev-dependency',
      comment: 'What ships may import only what is installed with it.',
      severity: 'error',
      from: { path: anyRoom },
      to: { dependencyTypes: ['npm-dev', 'npm-no-pkg', 'npm-unknown'] },
    },
  ],
  options: {
    doNotFollow: { path: npm },
    exclude: { path: '\\.d\\.ts$' },
    enhancedResolveOptions: {
      exportsFields: ['exports'],
      conditionNames: ['import', 'node', 'require', 'default'],
      mainFields: ['main'],
    },
  },
};
