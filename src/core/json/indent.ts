/** A string, an empty container, one structural character or whitespace; everything else is part of a scalar. */
const TOKEN = /"[^"\\]*(?:\\.[^"\\]*)*"|\{\s*\}|\[\s*\]|[{}[\],:]|\s+/g;

/**
 * Formats JSON over several lines. Every value keeps its text: no number passes through JavaScript.
 * @param json valid JSON; it is not checked
 */
export function indentJson(json: string): string {
  let depth = 0;
  const line = (change: number) => {
    depth += change;
    return `\n${'  '.repeat(depth)}`;
  };
  return json.replace(TOKEN, (token) => {
    if (token === '{' || token === '[') return `${token}${line(1)}`;
    if (token === '}' || token === ']') return `${line(-1)}${token}`;
    if (token === ',') return `,${line(0)}`;
    if (token === ':') return ': ';
    return token.startsWith('"') ? token : token.replace(/\s/g, '');
  });
}
