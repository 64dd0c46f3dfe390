/**
 * Adds feeds to the schema `scanfeed` as if they had been started in it before, so that several organizations may share it.
 * Parameters: the names, and the address of the service.
 */
export const ACCEPT_FEEDS = `
  INSERT INTO scanfeed.feeds (name, base_url, complete_from, filters)
  SELECT name, $2, '-infinity', '{"status": ["completed", "failed"], "environment": "all", "documentType": null}'
  FROM unnest($1::text[]) AS name`;
