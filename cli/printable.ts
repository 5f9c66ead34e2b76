// Owns what of a stranger's text may reach a terminal. Must never alter what is written into a file or a pipe.

/** Control characters can move the cursor, retitle the window or fake a prompt: only line ends and tabs stay. */
export function printable(text: string): string {
  const lines = text.replace(/\r\n/g, '\n');
  // oxlint-disable-next-line no-control-regex -- control characters are what is taken out
  return lines.replace(/[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u2028-\u202e\u2066-\u2069]/g, '');
}

/** The same on one line, for a status line or a sentence. */
export function oneLine(text: string): string {
  return printable(text).replace(/\s+/g, ' ').trim();
}

/** Rows under each other, two spaces between columns. */
export function columns(rows: readonly (readonly string[])[]): readonly string[] {
  const widths: number[] = [];
  for (const row of rows)
    for (const [index, cell] of row.entries()) widths[index] = Math.max(widths[index] ?? 0, cell.length);
  return rows.map((row) =>
    row
      .map((cell, index) => cell.padEnd(widths[index] ?? 0))
      .join('  ')
      .trimEnd(),
  );
}
