// Owns what a Worker bundles: the workflow types of this package, for people with their own Worker too.

export { sweepOperations } from './sweep-operations.js';
export { toolOperation } from './tool-operation.js';
