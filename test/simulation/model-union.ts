/** Values of one revision from its sources: feed entries and the single-run answer. */
export interface Sources {
  status: 'completed' | 'failed';
  environment: 'prod' | 'test';
  testMode: boolean;
  statesTestMode: boolean;
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
  const testModeDiffers = later.statesTestMode && later.testMode !== earlier.testMode;
  return earlier.environment !== later.environment || testModeDiffers;
}

/** Unites two sources. The later one supplies values that the earlier one omits; for steering fields the safe value wins. */
export function unite(a: Sources, b: Sources): Sources {
  const safe: Sources = {
    ...a,
    environment: b.environment === 'test' ? 'test' : a.environment,
    testMode: a.testMode || b.testMode,
    statesTestMode: a.statesTestMode || b.statesTestMode,
  };
  if (contradicts(a, b)) return safe;
  const markdown = a.markdown ?? b.markdown;
  return {
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
}

function withoutNulls(fields: Readonly<Record<string, unknown>>): Readonly<Record<string, unknown>> {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== null));
}

function isInFull({ pending, data, status }: Sources): boolean {
  return pending === null && (data !== null || status === 'failed');
}
