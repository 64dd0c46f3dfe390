/** What a fault does to a request. */
export const faultKinds = {
  status: 'answers with `status` and a German error body, without doing anything; `retryAfter` adds the header',
  html: 'answers with `status` (200 if not given) and an HTML page',
  answer: 'answers with `status`, `headers` and `body` verbatim',
  reset: 'destroys the connection before any answer',
  hang: 'never answers',
  empty: 'does the work, then answers with an empty body',
  half: 'does the work, then sends the first half of the body as if it were all',
  cut: 'does the work, then destroys the connection in the middle of the body (after `afterBytes`)',
  slow: 'does the work, then drips the body: `dripBytes` every `dripMs`',
  'invalid-cursor': 'feed: rejects the request if it carries a cursor, as the switch `cursorRefusal` says',
  'empty-cursor': 'feed: `nextCursor` is an empty string',
  'missing-cursor': 'feed: the page has no `nextCursor`',
  'stuck-cursor': 'feed: `nextCursor` is the cursor that was sent',
} as const;

export type FaultKind = keyof typeof faultKinds;
