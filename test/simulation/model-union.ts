/** The test mode of a run, and the revision that states it; null: none does. */
export interface TestMode {
  testMode: boolean;
  testModeRevision: number | null;
}

/** Values of one revision from its sources: feed entries and the single-run response. */
export interface Sources extends TestMode {
  revision: number;
  status: 'completed' | 'failed';
  environment: 'prod' | 'test';
  slug: string | null;
  typeName: string | null;
  partnerName: string | null;
  ocrConfidence: number | null;
  data: string | null;
  reason: string | null;
  error: string | null;
  submittedAt: string | null;
  completedAt: string | null;
  deliveredAt: string | null;
  markdown: string | null;
  markdownAbsent: boolean;
  extra: Readonly<Record<string, unknown>> | null;
  repaired: boolean;
  pending: string | null;
}

/** Returns whether two sources disagree: both have a value, and the values differ. */
export function contradicts(a: Sources, b: Sources): boolean {
  const names = ['slug', 'reason', 'error', 'data'] as const;
  return a.status !== b.status || names.some((name) => a[name] !== null && b[name] !== null && a[name] !== b[name]);
}

export function steeringDiffers(earlier: Sources, later: Sources): boolean {
  const stateBoth = later.testModeRevision !== null && later.testModeRevision === earlier.testModeRevision;
  return earlier.environment !== later.environment || (stateBoth && later.testMode !== earlier.testMode);
}

/** Returns the test mode that the highest revision states; true wins within a revision. */
export function latestTestMode(a: TestMode, b: TestMode): TestMode {
  const rank = ({ testMode, testModeRevision }: TestMode) =>
    testModeRevision === null ? -1 : testModeRevision * 2 + Number(testMode);
  const { testMode, testModeRevision } = rank(b) > rank(a) ? b : a;
  return { testMode, testModeRevision };
}

/** Returns whether only an earlier revision says that a run with a result is in test mode. */
export function isTestModeAssumed({ status, revision, testMode, testModeRevision }: Sources): boolean {
  return status === 'completed' && testMode && testModeRevision !== null && testModeRevision < revision;
}

/** Returns why a row is pending. The single run is asked for a test mode that is assumed. @param wasAsked whether it was */
export function pendingOf(row: Sources, wasAsked: boolean): string | null {
  if (!isInFull(row)) return row.pending;
  return isTestModeAssumed(row) && !wasAsked ? 'test_mode_unknown' : null;
}

/** Unites two sources. The later one supplies values that the earlier one omits; for steering fields the safe value wins. */
export function unite(a: Sources, b: Sources & { readonly isAnswer: boolean }): Sources {
  const safe: Sources = {
    ...a,
    environment: b.environment === 'test' ? 'test' : a.environment,
    ...latestTestMode(a, b),
  };
  const restates = safe.testModeRevision !== a.testModeRevision || safe.testMode !== a.testMode;
  const wasAsked = b.isAnswer || (a.pending === null && !restates);
  if (contradicts(a, b)) return { ...safe, pending: pendingOf(safe, wasAsked) };
  const markdown = a.markdown ?? b.markdown;
  const united: Sources = {
    ...safe,
    slug: a.slug ?? b.slug,
    typeName: a.typeName ?? b.typeName,
    partnerName: a.partnerName ?? b.partnerName,
    ocrConfidence: a.ocrConfidence ?? b.ocrConfidence,
    data: a.data ?? b.data,
    reason: a.reason ?? b.reason,
    error: a.error ?? b.error,
    submittedAt: a.submittedAt ?? b.submittedAt,
    completedAt: a.completedAt ?? b.completedAt,
    deliveredAt: a.deliveredAt ?? b.deliveredAt,
    markdown,
    markdownAbsent: (a.markdownAbsent || b.markdownAbsent) && markdown === null,
    extra:
      a.extra === null || b.extra === null
        ? (a.extra ?? b.extra)
        : { ...a.extra, ...b.extra, ...withoutNulls(a.extra) },
    repaired: a.repaired || b.repaired,
    pending: isInFull(a) || isInFull(b) ? null : (a.pending ?? b.pending),
  };
  return { ...united, pending: pendingOf(united, wasAsked) };
}

function withoutNulls(fields: Readonly<Record<string, unknown>>): Readonly<Record<string, unknown>> {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== null));
}

function isInFull({ pending, data, status }: Sources): boolean {
  return (pending === null || pending === 'test_mode_unknown') && (data !== null || status === 'failed');
}
