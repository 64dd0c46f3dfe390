import { isLoopback } from '../../settings/kinds.js';
import type { ServiceExam } from './examine-service.js';
import {
  type Finding,
  failing,
  findingsOf,
  ok,
  skipped,
  type Told,
  type Verdict,
  warning,
  wordsOf,
} from './finding.js';

/** What the `Date` header cannot show: it is cut to whole seconds, and the answer was under way. */
const CLOCK_TOLERANCE_MS = 2_000;
const CERTIFICATE_WARNING_MS = 14 * 86_400_000;

const UNKNOWN_HOST = /^(ENOTFOUND|EAI_|ENODATA|ESERVFAIL)/;

const CHECKS: Readonly<Record<string, (exam: ServiceExam, now: number) => Verdict>> = {
  'service address': judgeAddress,
  'service reached': judgeReached,
  'service TLS': judgeTls,
  'API key': judgeKey,
  'delivery feed': judgeFeed,
  'document type': judgeType,
  'service clock': judgeClock,
};

/** From the way to the service to what it answered; what follows from a failure is not said again. Pure. */
export function judgeService(exam: ServiceExam | null, now: number): readonly Finding[] {
  return findingsOf(CHECKS, (judge) =>
    exam === null ? skipped('needs the settings of the service') : judge(exam, now),
  );
}

function judgeAddress({ baseUrl, route, feed }: ServiceExam): Verdict {
  const { hostname } = new URL(baseUrl);
  const { proxy, address } = route;
  const { code } = failureOf(feed);
  if (UNKNOWN_HOST.test(code)) {
    const setting = proxy === null ? 'SCANFEED_BASE_URL' : 'HTTPS_PROXY';
    const host = proxy ?? hostname;
    return failing(`no address is known for ${host} (${code}); check ${setting} and DNS`);
  }
  if (proxy !== null) return ok(`${hostname} is looked up by the proxy ${proxy}`);
  if (address === null) return ok(hostname);
  return ok(hostname === address ? address : `${hostname} is ${address}`);
}

function judgeReached(exam: ServiceExam): Verdict {
  const { route, feed } = exam;
  const { kind, code, words } = failureOf(feed);
  if (UNKNOWN_HOST.test(code)) return skipped('needs its address');
  const proxied = route.proxy === null ? '' : ` by the proxy ${route.proxy}`;
  if (kind === 'certificate' || !isUnreached(exam)) return ok(`connected${proxied}`);
  if (kind === 'timeout')
    return failing(`no connection${proxied} in time; check the network, its policies and firewalls`);
  if (route.proxy !== null && route.address !== null) {
    return failing(
      `${route.proxy} gave no way to the service (${code}); check HTTPS_PROXY, its login and its log, or NO_PROXY`,
    );
  }
  if (route.proxy !== null) return failing(`no connection to the proxy ${route.proxy} (${code}); check HTTPS_PROXY`);
  return failing(words);
}

/** No request got through to the service. */
function isUnreached({ route, feed }: ServiceExam): boolean {
  const { kind } = failureOf(feed);
  return kind === 'connection' || kind === 'certificate' || (kind === 'timeout' && route.address === null);
}

function judgeTls(exam: ServiceExam, now: number): Verdict {
  const { baseUrl, route, feed } = exam;
  const { kind, words } = failureOf(feed);
  if (kind === 'certificate') return failing(words);
  if (isUnreached(exam)) return skipped('needs a connection');
  const url = new URL(baseUrl);
  if (url.protocol === 'http:') {
    return isLoopback(url)
      ? ok('none: a loopback address')
      : warning(
          'none: the key and all documents cross the network as they are, unless a mesh encrypts them; use https:',
        );
  }
  if (route.tls === null) return ok('encrypted');
  const { protocol: version, validTo } = route.tls;
  if (validTo === null) return ok(version);
  const until = validTo.toISOString().slice(0, 10);
  return validTo.getTime() - now < CERTIFICATE_WARNING_MS
    ? warning(`${version}; the certificate ends on ${until}: ask the operator of the service to renew it`)
    : ok(`${version}, certificate valid until ${until}`);
}

function judgeKey(exam: ServiceExam): Verdict {
  const { kind, status, words } = failureOf(exam.feed);
  if (kind === 'api_key') return failing(`${words}; check SCANFEED_API_KEY`);
  if (isUnreached(exam)) return skipped('needs a connection');
  if ('value' in exam.feed) return ok('accepted');
  if (status === 401 || status === 403) return failing(`${words} (SCANFEED_API_KEY)`);
  return skipped('needs an answer of the feed');
}

function judgeFeed(exam: ServiceExam): Verdict {
  const { feed, filters } = exam;
  const asked = `status ${filters.status.join(', ')}, environment ${filters.environment}`;
  if ('value' in feed) {
    const { tookMs, entries } = feed.value;
    const found = entries === 0 ? 'answers, and is empty' : 'answers';
    return ok(`${found} (${asked}; ${Math.round(tookMs)} ms)`);
  }
  if (isUnreached(exam)) return skipped('needs a connection');
  const { kind, status, words } = failureOf(feed);
  if (status === 401 || status === 403 || kind === 'api_key') return skipped('needs a key that is accepted');
  if (status === 404) return failing(`${exam.baseUrl} has no feed (404); check SCANFEED_BASE_URL, which ends in /v1`);
  if (status === 400) return failing(`refused for ${asked}: ${words}`);
  return failing(words);
}

function judgeType({ filters, feed, typed }: ServiceExam): Verdict {
  if (filters.documentType === null) return ok('every one: SCANFEED_DOCUMENT_TYPE is not set');
  const slug = JSON.stringify(filters.documentType);
  if (typed === null) return skipped('error' in feed ? 'needs an answer of the feed' : 'not asked');
  if ('value' in typed) return ok(`${slug} is known`);
  const { status, words } = failureOf(typed);
  if (status !== 404) return failing(words);
  return failing(`${slug} is not known to the service; correct SCANFEED_DOCUMENT_TYPE: ${words}`);
}

function judgeClock({ feed }: ServiceExam): Verdict {
  if ('error' in feed) return skipped('needs an answer of the feed');
  const { serviceDate, sentAt, receivedAt } = feed.value;
  if (serviceDate === null) return ok('not known: the service sends no Date header');
  const aheadMs = serviceDate.getTime() - (sentAt + receivedAt) / 2;
  return judgeClocks('the service', aheadMs, 'scanfeed takes that out of its freshness');
}

/** @param aheadMs how far the other clock is ahead of this machine's, milliseconds */
export function judgeClocks(whose: string, aheadMs: number, effect: string): Verdict {
  if (Math.abs(aheadMs) <= CLOCK_TOLERANCE_MS) return ok('less than 2 s from the clock of this machine');
  const seconds = Math.round(Math.abs(aheadMs) / 1_000);
  const direction = aheadMs > 0 ? 'ahead of' : 'behind';
  return warning(`${whose} is ${seconds} s ${direction} this machine; ${effect}, but one of them needs NTP`);
}

/** What is known of a request's failure; empty texts where it was answered. */
function failureOf(feed: Told<unknown>) {
  if ('value' in feed) return { kind: '', code: '', status: null, words: '' };
  const { kind = 'internal', code = '', status } = (feed.error ?? {}) as Readonly<Record<string, unknown>>;
  return { kind: String(kind), code: String(code), status, words: wordsOf(feed.error) };
}
