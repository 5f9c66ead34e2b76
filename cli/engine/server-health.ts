/** Owns: the question "can this server be used now?". Must never change anything on the server. */
import { Connection } from '@temporalio/client';
import { isListening, LOOPBACK } from './free-port.js';

export interface ExpectedServer {
  readonly port: number;
  readonly namespace: string;
  readonly searchAttributes: readonly string[];
}

const PROBE_LIMIT_MS = 5_000;

/** What is still missing, or `undefined` when the server can be used. Never throws. */
export async function probeServer(expected: ExpectedServer): Promise<string | undefined> {
  // First the bare port: a gRPC channel that was refused once backs off for a second before it tries again.
  if (!(await isListening(expected.port))) return `nothing listens on ${LOOPBACK}:${expected.port}`;
  let connection: Connection | undefined;
  try {
    connection = await Connection.connect({
      address: `${LOOPBACK}:${expected.port}`,
      connectTimeout: PROBE_LIMIT_MS,
    });
    return await missingPart(connection, expected);
  } catch (error) {
    return error instanceof Error ? error.message : String(error);
  } finally {
    await connection?.close();
  }
}

async function missingPart(connection: Connection, expected: ExpectedServer): Promise<string | undefined> {
  const { namespace } = expected;
  return connection.withDeadline(Date.now() + PROBE_LIMIT_MS, async () => {
    await connection.workflowService.getSystemInfo({});
    // The port opens before the namespace is there, and the namespace before its search attributes.
    await connection.workflowService.describeNamespace({ namespace });
    const { customAttributes } = await connection.operatorService.listSearchAttributes({ namespace });
    const absent = expected.searchAttributes.filter((name) => customAttributes?.[name] === undefined);
    return absent.length === 0 ? undefined : `search attributes ${absent.join(', ')} are not there yet`;
  });
}
