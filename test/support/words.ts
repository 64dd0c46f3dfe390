/** A word or phrase that the project avoids, in the sense that the pattern finds, and the usual one for it. */
interface AvoidedWord {
  readonly pattern: RegExp;
  readonly instead: string;
}

/** Words of prose: comments, messages, help and documentation. */
const WORDS: readonly AvoidedWord[] = [
  { pattern: /\banew\b/i, instead: 'again, or a verb with re-' },
  { pattern: /\bmend(?:s|ed|ing)?\b/i, instead: 'fix, repair' },
  { pattern: /\bbeside\b/i, instead: 'next to, with, while' },
  { pattern: /\bfrom behind\b/i, instead: 'catch up' },
  { pattern: /\b(?:told|tells? of)\b/i, instead: 'reported, logged' },
  { pattern: /\blook(?:s|ed|ing)? after\b/i, instead: 'maintain, operate' },
  { pattern: /\b(?:go|goes|going|went) on\b/i, instead: 'continue, resume' },
  { pattern: /\bwhoever\b/i, instead: 'a named subject' },
  { pattern: /\bit is so that\b/i, instead: 'nothing' },
  { pattern: /\bfor good\b/i, instead: 'permanently' },
  { pattern: /\bby (?:itself|themselves)\b/i, instead: 'automatically, alone' },
  { pattern: /\bas it says\b/i, instead: 'see the message' },
  { pattern: /\b(?:stands?|stood)\b(?! (?:by|for)\b)/i, instead: 'is stored, is written, is' },
  { pattern: /\blies\b/i, instead: 'is' },
  { pattern: /\bcomes\b(?! (?:from|first|next|with|back|after|before)\b)/i, instead: 'arrives' },
  { pattern: /\bat (?:work|hand)\b/i, instead: 'running, available' },
  { pattern: /\bin the midst\b/i, instead: 'during' },
  { pattern: /\bsooner\b/i, instead: 'earlier' },
  { pattern: /\b(?:lately|seldom|now and then)\b/i, instead: 'a number with its unit' },
  { pattern: /\bmostly\b/i, instead: 'usually, or a number' },
  { pattern: /\bOne that\b/, instead: 'a named subject' },
  { pattern: /\bcertificate authorit(?:y|ies)\b/i, instead: 'CA, CA certificate' },
  { pattern: /\bbelongs? into\b/i, instead: 'belong in' },
  { pattern: /\bis no (?:reason|special case)\b/i, instead: 'is not a' },
  { pattern: /\b(?:single-run|cached) answers?\b/i, instead: 'response' },
];

/** Former names, in code and documentation. */
const NAMES: readonly AvoidedWord[] = [
  { pattern: /\b(?:tryHold|giveWay)\b/, instead: 'tryReserve, resize' },
  { pattern: /\b(?:Trouble|troubleOf|troubles)\b/, instead: 'Failure, classifyError, recent_errors' },
  { pattern: /\b(?:keepHouse|chores?)\b/, instead: 'runMaintenance, task' },
  { pattern: /\b(?:PageDraft|DraftEntry|draftPage)\b/, instead: 'CheckedPage, CheckedEntry, checkPage' },
  { pattern: /\b(?:SweepProgress|BackfillOutcome|BackfillTurn)\b/, instead: 'PassResult' },
  { pattern: /\b(?:takeTurns|STRETCH_MS)\b/, instead: 'runRepeatedly, SLICE_MS' },
  { pattern: /\bfeed-pauses\b/, instead: 'idle-gate' },
  { pattern: /\b(?:cursor-witness|requireFeedCursor)\b/, instead: 'isSameOrganization' },
  { pattern: /\bjson\/light\b/, instead: 'skip-large-values' },
  { pattern: /\bLOOK_MS\b/, instead: 'CHECK_INTERVAL_MS' },
  { pattern: /\bsparing-warnings\b/, instead: 'throttled-warnings' },
  { pattern: /\b(?:patiently|underPresentEpoch|FeedAtWork)\b/, instead: 'withRetries, withCurrentLease, FeedContext' },
  { pattern: /\b(?:postGuardian|stranded)\b/, instead: 'startWatchdog, orphaned' },
  {
    pattern: /\b(?:paced_at|widened_at|read_up_to)\b/,
    instead: 'rate_measured_at, filters_widened_at, delivered_up_to',
  },
  { pattern: /\bscanfeed_reading_/, instead: 'scanfeed_pass_' },
  { pattern: /\boverhear\b/, instead: 'captureLeaks' },
];

/** Exact phrases that contain a listed word in another sense. */
const ALLOWED: readonly string[] = [];

const blank = (text: string): string => text.replaceAll(/[^\n]/g, ' ');

/** A page without its code, which quotes the program: code is checked where it is written. */
const proseOf = (page: string): string => page.replaceAll(/^```.*?^```$/gms, blank).replaceAll(/`[^`\n]*`/g, blank);

/** The avoided words of a source or a page, each as `path:line: "word" (instead: …)`. */
export function findAvoidedWords(path: string, text: string): readonly string[] {
  const allowed = ALLOWED.reduce((rest, phrase) => rest.replaceAll(phrase, blank(phrase)), text);
  const prose = path.endsWith('.md') ? proseOf(allowed) : allowed;
  return [...findIn(path, prose, WORDS), ...findIn(path, allowed, NAMES)];
}

function findIn(path: string, text: string, words: readonly AvoidedWord[]): readonly string[] {
  return text.split('\n').flatMap((line, index) =>
    words.flatMap(({ pattern, instead }) => {
      const [found] = pattern.exec(line) ?? [];
      return found === undefined ? [] : [`${path}:${index + 1}: "${found}" (instead: ${instead})`];
    }),
  );
}
