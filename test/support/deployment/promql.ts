/**
 * Names of the metrics in a PromQL expression. The next character distinguishes them from functions and from labels in `by (…)`.
 */
export function metricsIn(expression: string): string[] {
  return [...new Set(expression.match(/\b(?:scanfeed|process|nodejs)_\w+/g) ?? [])];
}

/** Label matchers in a PromQL expression with each of the values that they name: `label="a"`, `label=~"a|b"`. */
export function matchersIn(expression: string): { label: string; value: string }[] {
  return [...expression.matchAll(/(\w+)(?:=~?|!=|!~)"([^"]*)"/g)].flatMap(([, label = '', values = '']) =>
    values.split('|').map((value) => ({ label, value })),
  );
}
