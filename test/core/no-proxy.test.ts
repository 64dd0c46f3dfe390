import { expect, it } from 'vitest';
import { parseNoProxy } from '../../src/core/no-proxy.js';

it.each([
  ['recognition.example', 'https://recognition.example/v1', true],
  ['example', 'https://recognition.example/v1', true],
  ['.example', 'https://recognition.example/v1', true],
  ['*.EXAMPLE', 'https://recognition.example/v1', true],
  ['nition.example', 'https://recognition.example/v1', false],
  ['other.test, recognition.example:443', 'https://recognition.example/v1', true],
  ['recognition.example:8443', 'https://recognition.example/v1', false],
  ['*', 'https://recognition.example/v1', true],
  ['', 'https://recognition.example/v1', false],
  ['10.0.0.0/8', 'https://10.1.2.3/v1', true],
  ['10.0.0.0/8:8443', 'https://10.1.2.3/v1', false],
  ['10.0.0.0/8', 'https://11.1.2.3/v1', false],
  ['10.0.0.0/8', 'https://10.example/v1', false],
  ['0.0.0.0/0', 'https://10.1.2.3/v1', true],
  ['10.1.2.3', 'https://10.1.2.3/v1', true],
  ['2.3', 'https://10.1.2.3/v1', false],
  ['::1', 'http://[::1]:8080/v1', true],
  ['[::1]', 'http://[::1]:8080/v1', true],
  ['[::1]:8080', 'http://[::1]:8080/v1', true],
  ['[::1]:80', 'http://[::1]:8080/v1', false],
  ['0:0:0:0:0:0:0:1', 'http://[::1]/v1', true],
  ['fd00::/8', 'https://[fd12::7]/v1', true],
  ['fd00::/8', 'https://[fe80::7]/v1', false],
])('matches %j with %s: %s', (list, url, isDirect) => {
  expect(parseNoProxy(list)(new URL(url))).toBe(isDirect);
});

it.each(['10.0.0.0/33', '10.0.0.0/x', '10.0.0.0/', 'fd00::/129', 'host/8', 'http://host', 'host:port', '.'])(
  'refuses %s',
  (list) => {
    expect(() => parseNoProxy(list)).toThrow(RangeError);
  },
);
