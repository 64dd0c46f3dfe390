import { isLoopback } from '../../settings/kinds.js';
import type { FeedAnswer, ServiceExam } from './examine-service.js';
import { type Finding, failing, ok, skipped, type Told, warning, wordsOf } from './finding.js';

/** What the `Date` header cannot show: it is cut to whole seconds, and the answer was under way. */
const CLOCK_TOLERANCE_MS = 2_000;
const CERTIFICATE_WARNING_MS = 14 * 86_400_000;

const UNKNOWN_HOST = /^(ENOTFOUND|EAI_|ENODATA|ESERVFAIL)/;

const CHECKS = {
  address: 'service address',
  reached: 'service reached',
  tls: 'service TLS',
  key: 'API key',
  feed: 'delivery feed',
  type: 'document type',
  clock: 'service clock',
} as const;

/** From the way to the service to what it answered; what follows from a failure is not said again. Pure. */
export function judgeService(exam: ServiceExam | null, now: number): readonly Finding[] {
  if (exam === null) return Object.values(CHECKS).map((check) => skipped(check, 'needs the settings of the service'));
  return [
    judgeAddress(exam),
    judgeReached(exam),
    judgeTls(exam, now),
    judgeKey(exam),
    judgeFeed(exam),
    judgeType(exam),
    judgeClock(exam.feed),
  ];
}

function judgeAddress({ baseUrl, route, feed }: ServiceExam): Finding {
  const { hostname } = new URL(baseUrl);
  const { proxy, address } = route;
  if (UNKNOWN_HOST.test(codeOf(feed))) {
    const setting = proxy === null ? 'SCANFEED_BASE_URL' : 'HTTPS_PROXY';
    const host = proxy ?? hostname;
    return failing(CHECKS.address, `no address is known for ${host} (${codeOf(feed)}); check ${setting} and DNS`);
  }
  if (proxy !== null) return ok(CHECKS.address, `${hostname} is looked up by the proxy ${proxy}`);
  if (address === null) return ok(CHECKS.address, hostname);
  return ok(CHECKS.address, hostname === address ? address : `${hostname} is ${address}`);
}

function judgeReached(exam: ServiceExam): Finding {
  const { route, feed } = exam;
  const check = CHECKS.reached;
  if (UNKNOWN_HOST.test(codeOf(feed))) return skipped(check, 'needs its address');
  const [kind, code] = [kindOf(feed), codeOf(feed)];
  const proxied = route.proxy === null ? '' : ` by the proxy ${route.proxy}`;
  if (kind === 'certificate' || !isUnreached(exam)) return ok(check, `connected${proxied}`);
  if (kind === 'timeout')
    return failing(check, `no connection${proxied} in time; check the network, its policies and firewalls`);
  if (route.proxy !== null && route.address !== null) {
    return failing(
      check,
      `${route.proxy} gave no way to the service (${code}); check HTTPS_PROXY, its login and its log, or NO_PROXY`,
    );
  }
  if (route.proxy !== null)
    return failing(check, `no connection to the proxy ${route.proxy} (${code}); check HTTPS_PROXY`);
  return failing(check, wordsOf('error' in feed ? feed.error : null));
}

/** No request got through to the service. */
function isUnreached({ route, feed }: ServiceExam): boolean {
  const kind = kindOf(feed);
  return kind === 'connection' || kind === 'certificate' || (kind === 'timeout' && route.address === null);
}

function judgeTls(exam: ServiceExam, now: number): Finding {
  const { baseUrl, route, feed } = exam;
  const check = CHECKS.tls;
  if (kindOf(feed) === 'certificate') return failing(check, wordsOf('error' in feed ? feed.error : null));
  if (isUnreached(exam)) return skipped(check, 'needs a connection');
  const url = new URL(baseUrl);
  if (url.protocol === 'http:') {
    return isLoopback(url)
      ? ok(check, 'none: a loopback address')
      : warning(
          check,
          'none: the key and all documents cross the network as they are, unless a mesh encrypts them; use https:',
        );
  }
  if (route.tls === null) return ok(check, 'encrypted');
  const { protocol: version, validTo } = route.tls;
  if (validTo === null) return ok(check, version);
  const until = validTo.toISOString().slice(0, 10);
  return validTo.getTime() - now < CERTIFICATE_WARNING_MS
    ? warning(check, `${version}; the certificate ends on ${until}: ask the operator of the service to renew it`)
    : ok(check, `${version}, certificate valid until ${until}`);
}

function judgeKey(exam: ServiceExam): Finding {
  const { feed } = exam;
  const check = CHECKS.key;
  if (kindOf(feed) === 'api_key')
    return failing(check, `${wordsOf('error' in feed && feed.error)}; check SCANFEED_API_KEY`);
  if (isUnreached(exam)) return skipped(check, 'needs a connection');
  const { status } = answerOf(feed);
  if ('value' in feed) return ok(check, 'accepted');
  if (status === 401 || status === 403) return failing(check, `${wordsOf(feed.error)} (SCANFEED_API_KEY)`);
  return skipped(check, 'needs an answer of the feed');
}

function judgeFeed(exam: ServiceExam): Finding {
  const { feed, filters } = exam;
  const check = CHECKS.feed;
  const asked = `status ${filters.status.join(', ')}, environment ${filters.environment}`;
  if ('value' in feed) {
    const { tookMs, entries } = feed.value;
    const found = entries === 0 ? 'answers, and is empty' : 'answers';
    return ok(check, `${found} (${asked}; ${Math.round(tookMs)} ms)`);
  }
  if (isUnreached(exam)) return skipped(check, 'needs a connection');
  const { status } = answerOf(feed);
  if (status === 401 || status === 403 || kindOf(feed) === 'api_key')
    return skipped(check, 'needs a key that is accepted');
  if (status === 404)
    return failing(check, `${exam.baseUrl} has no feed (404); check SCANFEED_BASE_URL, which ends in /v1`);
  if (status === 400) return failing(check, `refused for ${asked}: ${wordsOf(feed.error)}`);
  return failing(check, wordsOf(feed.error));
}

function judgeType({ filters, feed, typed }: ServiceExam): Finding {
  const check = CHECKS.type;
  if (filters.documentType === null) return ok(check, 'every one: SCANFEED_DOCUMENT_TYPE is not set');
  const slug = JSON.stringify(filters.documentType);
  if (typed === null) return skipped(check, 'error' in feed ? 'needs an answer of the feed' : 'not asked');
  if ('value' in typed) return ok(check, `${slug} is known`);
  if (answerOf(typed).status !== 404) return failing(check, wordsOf(typed.error));
  return failing(check, `${slug} is not known to the service; correct SCANFEED_DOCUMENT_TYPE: ${wordsOf(typed.error)}`);
}

function judgeClock(feed: Told<FeedAnswer>): Finding {
  const check = CHECKS.clock;
  if ('error' in feed) return skipped(check, 'needs an answer of the feed');
  const { serviceDate, sentAt, receivedAt } = feed.value;
  if (serviceDate === null) return ok(check, 'not known: the service sends no Date header');
  const aheadMs = serviceDate.getTime() - (sentAt + receivedAt) / 2;
  return judgeClocks(check, 'the service', aheadMs, 'scanfeed takes that out of its freshness');
}

/** @param aheadMs how far the other clock is ahead of this machine's, milliseconds */
export function judgeClocks(check: string, whose: string, aheadMs: number, effect: string): Finding {
  if (Math.abs(aheadMs) <= CLOCK_TOLERANCE_MS) return ok(check, 'less than 2 s from the clock of this machine');
  const seconds = Math.round(Math.abs(aheadMs) / 1_000);
  const direction = aheadMs > 0 ? 'ahead of' : 'behind';
  return warning(check, `${whose} is ${seconds} s ${direction} this machine; ${effect}, but one of them needs NTP`);
}

function kindOf(feed: Told<unknown>): string {
  return 'error' in feed ? String((feed.error as { kind?: unknown } | null)?.kind ?? 'internal') : '';
}

function codeOf(feed: Told<unknown>): string {
  return 'error' in feed ? String((feed.error as { code?: unknown } | null)?.code ?? '') : '';
}

function answerOf(feed: Told<unknown>): { readonly status: number | null } {
  const status = 'error' in feed ? (feed.error as { status?: unknown } | null)?.status : null;
  return { status: typeof status === 'number' ? status : null };
}
