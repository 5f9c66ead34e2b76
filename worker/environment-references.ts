// Owns `${NAME}` and `${NAME:-default}` in configuration. Must never put a value into an error text.

export type Expansion =
  | { readonly kind: 'expanded'; readonly text: string }
  | { readonly kind: 'mistake'; readonly message: string };

export type Environment = Readonly<Record<string, string | undefined>>;

/** As in a shell, the default also stands in for an empty variable. What was put in is not expanded again. */
export function expandReferences(text: string, env: Environment): Expansion {
  const mistakes: string[] = [];
  const expanded = text.replaceAll(/\$\{([^}]*)(\}?)/g, (_, inside: string, end: string) => {
    const [, name, fallback] = /^([A-Za-z_]\w*)(?::-(.*))?$/s.exec(inside) ?? [];
    if (name === undefined || end === '') {
      mistakes.push('has a "${" that is no reference; allowed: "${NAME}" or "${NAME:-default}"');
      return '';
    }
    const value = Object.hasOwn(env, name) ? env[name] : undefined;
    if (fallback !== undefined) return value === undefined || value === '' ? fallback : value;
    if (value !== undefined) return value;
    mistakes.push(`the environment variable ${name} is not set; set it, or write "\${${name}:-default}"`);
    return '';
  });
  const [message] = mistakes;
  return message === undefined ? { kind: 'expanded', text: expanded } : { kind: 'mistake', message };
}
