/** The service's interface as OpenAPI. It is two folders up from both `dist/emulator/` and the bundle in `dist/program/`. */
export const SERVICE_DESCRIPTION = new URL('../../openapi/recognition-service.json', import.meta.url);
