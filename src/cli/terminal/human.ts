/** Such as `4.2 s`, `12 min`, `3.5 h`, `8 d`. */
export function humanSeconds(seconds: number): string {
  if (seconds < 100) return `${seconds.toFixed(1)} s`;
  if (seconds < 6_000) return `${Math.round(seconds / 60)} min`;
  if (seconds < 48 * 3_600) return `${(seconds / 3_600).toFixed(1)} h`;
  return `${Math.round(seconds / 86_400)} d`;
}

/** Such as `1 entry`, `2 entries`. */
export function counted(number: number, one: string, many: string): string {
  return `${number} ${number === 1 ? one : many}`;
}

/** Such as `2026-01-31T08:00:00Z`. */
export function toSeconds(time: Date | string): string {
  return `${new Date(time).toISOString().slice(0, 19)}Z`;
}
