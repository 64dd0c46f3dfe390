import { describe, expect, it } from 'vitest';
import { endsConnection } from '../../../src/storage/connection/errors.js';

/** Errors as the driver throws them; the severity is in the language of the server. */
const reported = (code: string, severity: string) => Object.assign(new Error('x'), { code, severity });

describe('the connection after an error', () => {
  it.each(['22P02', '23514', '40P01', '42P01', '53100', '53200', '55P03', '57014', 'P0001', 'SF001'])(
    'serves on after %s, in whatever language the server speaks',
    (code) => {
      expect(['ERROR', 'FEHLER', 'ОШИБКА'].map((severity) => endsConnection(reported(code, severity)))).toEqual([
        false,
        false,
        false,
      ]);
    },
  );

  it.each(['08006', '25006', '25P03', '25P04', '28P01', '3D000', '53300', '57P01', '57P02', '57P05', '58030', 'XX000'])(
    'is given up after %s',
    (code) => {
      expect(endsConnection(reported(code, 'SCHWERWIEGEND'))).toBe(true);
    },
  );

  it('is closed when PostgreSQL did not report the error', () => {
    expect(endsConnection(Object.assign(new Error('x'), { code: 'EPIPE' }))).toBe(true);
    expect(endsConnection(undefined)).toBe(true);
  });
});
