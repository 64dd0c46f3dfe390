/** POST /v1/scans: submit a document (interface 4.1). */

import { jsonAnswer, Refusal } from '../model/refusal.js';
import type { Environment } from '../model/runs.js';
import type { Call, Outcome } from './operation.js';
import { single } from './parameters.js';
import { readUpload } from './upload.js';

export async function submit(call: Call): Promise<Outcome> {
  const { service, organization, request } = call;
  const { switches } = service;
  const environment = parseEnvironment(single(call.query, 'environment'));
  const key = request.headers['idempotency-key'];
  const idempotencyKey = typeof key === 'string' && key !== '' ? key : null;
  if (idempotencyKey === null && switches.idempotencyKeyRequired) {
    throw new Refusal(400, 'Der Header „Idempotency-Key“ ist erforderlich.');
  }
  const { fileName, fileHash, documentType } = await readUpload(request, switches.maxFileBytes);
  service.requireDocumentType(documentType);
  // The interface names only file and environment, but a run of another document type would be a misleading response.
  const fingerprint = JSON.stringify([fileHash, environment, documentType]);
  const known = idempotencyKey === null ? undefined : organization.idempotency.get(idempotencyKey);
  if (known !== undefined && known.request !== fingerprint) {
    throw new Refusal(409, 'Der Idempotency-Key wurde bereits für eine andere Anfrage verwendet.');
  }
  if (known !== undefined) return repeat(call, known.scanId);
  if (switches.notReadySchemas.some((s) => s.documentType === documentType && s.environment === environment)) {
    throw new Refusal(
      switches.notReadyStatus,
      `Für den Dokumenttyp „${documentType}“ ist in dieser Umgebung kein Schema eingerichtet.`,
    );
  }
  const scanId = organization.submit({ environment, documentType, fileName }, service.now());
  if (idempotencyKey !== null) organization.rememberKey(idempotencyKey, fingerprint, scanId);
  return accepted(call, 202, scanId, 'processing');
}

function repeat(call: Call, scanId: string): Outcome {
  const found = call.organization.find(scanId, call.service.now());
  return accepted(call, 200, scanId, found !== null && 'version' in found ? found.version.status : 'processing');
}

function accepted({ service, request }: Call, status: number, scanId: string, runStatus: string): Outcome {
  const base = service.switches.statusUrlBase ?? `${request.protocol}://${request.host}/v1`;
  const statusUrl = `${base}/scans/${encodeURIComponent(scanId)}`;
  const headers: Record<string, string> = status === 202 ? { location: statusUrl } : {};
  const fields = service.switches.submissionFields === 'all' ? { scanId, status: runStatus, statusUrl } : { scanId };
  return { scanId, answer: jsonAnswer(status, JSON.stringify(fields), headers) };
}

function parseEnvironment(value: string | null): Environment {
  if (value === 'prod' || value === 'test') return value;
  throw new Refusal(400, 'Der Parameter „environment“ ist erforderlich: „prod“ oder „test“.');
}
