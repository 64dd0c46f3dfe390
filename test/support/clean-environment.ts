/**
 * Takes out of the environment what would steer the program under test, so that tests run alike on every machine:
 * settings of scanfeed, of libpq and of proxies.
 */
for (const name of Object.keys(process.env)) {
  if (/^(SCANFEED_.*|PG.*|DATABASE_URL(_FILE)?|(HTTPS?|NO|ALL)_PROXY)$/i.test(name)) delete process.env[name];
}
