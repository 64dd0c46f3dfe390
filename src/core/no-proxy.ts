import { BlockList, isIP } from 'node:net';

type Matcher = (host: string) => boolean;

/**
 * Parses a list of hosts to reach without a proxy, as in NO_PROXY: names, which include their subdomains, IP addresses and
 * subnets (CIDR), each with an optional port, or `*`; separated by commas. An IPv6 address with a port is in brackets.
 * Returns whether a URL is on the list. Throws if an entry is invalid. Names are not resolved.
 */
export function parseNoProxy(list: string): (url: URL) => boolean {
  const entries = list.split(/[\s,]+/).filter(Boolean);
  const parsed = entries.map((entry) => {
    const [, bracketed, plain, port] = /^(?:\[(.*)\]|([^:]*))(?::(\d+))?$/.exec(entry) ?? [];
    return { matches: matcherOf((bracketed ?? plain ?? entry).toLowerCase()), port };
  });
  return ({ hostname, port, protocol }) => {
    const host = hostname.replace(/^\[|\]$/g, '');
    const ownPort = port || (protocol === 'https:' ? '443' : '80');
    return parsed.some((entry) => (entry.port ?? ownPort) === ownPort && entry.matches(host));
  };
}

function matcherOf(host: string): Matcher {
  const [address = '', prefix] = host.split('/');
  if (isIP(address) > 0) return matcherOfSubnet(address, prefix);
  const name = host.replace(/^\*?\./, '');
  if (name === '' || /[/:[\]]/.test(name)) throw new RangeError(`neither a host nor a subnet: ${host}`);
  return (other) => host === '*' || other === name || (isIP(other) === 0 && other.endsWith(`.${name}`));
}

function matcherOfSubnet(address: string, prefix = isIP(address) === 6 ? '128' : '32'): Matcher {
  const subnet = new BlockList();
  subnet.addSubnet(address, Number(prefix || Number.NaN), familyOf(address));
  return (host) => isIP(host) > 0 && subnet.check(host, familyOf(host));
}

function familyOf(address: string): 'ipv4' | 'ipv6' {
  return isIP(address) === 6 ? 'ipv6' : 'ipv4';
}
