/** The service's interface as OpenAPI. Two folders up, from `dist/emulator/` and from the bundle in `dist/program/` alike. */
export const SERVICE_DESCRIPTION = new URL('../../openapi/recognition-service.json', import.meta.url);
