/** GET /v1/scans/{scanId}: one run in full (interface 4.3). */

import { jsonAnswer, Refusal } from '../model/refusal.js';
import type { Call, Outcome } from './operation.js';
import { isTrueLike, single } from './parameters.js';
import { renderProcessing, renderRun } from './render-run.js';

export function run({ service, organization, request, query }: Call): Outcome {
  const { scanId } = request.params as { scanId: string };
  const scripted = service.runScripts.take(scanId);
  if (scripted !== null) return { answer: scripted, verbatim: true };
  const markdown = isTrueLike(single(query, 'markdown'));
  const found = organization.find(scanId, service.now());
  if (found === null) throw new Refusal(404, 'Der Verarbeitungslauf wurde nicht gefunden.');
  const text =
    'processing' in found ? renderProcessing(found.processing) : renderRun(found.version, markdown, service.switches);
  return { answer: jsonAnswer(200, text) };
}
