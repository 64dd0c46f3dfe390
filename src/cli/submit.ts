import { setMaxListeners } from 'node:events';
import { type Command, InvalidArgumentError, Option } from 'commander';
import type { RecognitionClient } from '../service/client.js';
import { readSettings, type ServiceSettings } from '../settings.js';
import { type CommandProcess, thisProcess } from './command-process.js';
import { wholeNumber } from './emulator-options.js';
import { CommandFailure, EXIT } from './exit.js';
import { counted } from './human.js';
import { progressLine } from './progress-line.js';
import { untilStopped } from './stop-signals.js';
import { awaitRuns } from './submission/await-runs.js';
import { createPatientRequests } from './submission/patient-requests.js';
import { checkFile, findFiles, type PdfFile, type RefusedFile } from './submission/pdf-files.js';
import { describeEnded, describeSubmitted, failureOf, summary } from './submission/report.js';
import type { SubmittedFile } from './submission/submission.js';
import { submitAll } from './submission/submit-all.js';
import { printable } from './table.js';
import { withClient } from './with-service.js';

interface Given {
  readonly documentType: string;
  readonly environment: 'prod' | 'test';
  readonly new?: true;
  readonly wait?: true;
  readonly concurrency: number;
  readonly json?: true;
}

/** How long an orderly end is waited for when the command is interrupted. */
const PATIENCE_MS = 1_500;

const examples = `
All files are checked before the first is sent: one that is no PDF, empty or not
to be read keeps all of them back. Of a folder the .pdf files in it are meant.
A repeat is safe: the same content, document type and environment give the run
that exists, and the command says so. No database is needed.

Examples:
  $ scanfeed submit invoice.pdf --document-type rechnung --environment test
  A folder, and wait for what was recognized:
    $ scanfeed submit inbox/ --document-type rechnung --environment prod --wait
  Those whose run has failed for good once more; the others are left alone:
    $ scanfeed submit inbox/ --document-type rechnung --environment prod --new
  The scan ids, for a script:
    $ scanfeed submit inbox/ --document-type rechnung --environment prod \\
        --json | jq -r '.[].scanId'
  A result:
    $ scanfeed get 6083ce9e-b870-4e2b-8bbd-88dac083ce9e`;

/** `scanfeed submit`: sends PDFs to be recognized. */
export function register(program: Command, io: CommandProcess = thisProcess): void {
  program
    .command('submit')
    .description('Submit PDFs to be recognized: files, or all of a folder.')
    .argument('<files...>', 'PDF files, or folders of them')
    .requiredOption('--document-type <slug>', 'document type to recognize them against', slug)
    .addOption(
      new Option('--environment <name>', 'where the runs belong; it has no default')
        .choices(['prod', 'test'])
        .makeOptionMandatory(),
    )
    .option('--new', 'make another run of files whose run has failed')
    .option('--wait', 'wait until the runs are completed or have failed')
    .option('--concurrency <number>', 'files on their way at once', atOnce, 4)
    .option('--json', 'print it as JSON')
    .addHelpText('after', examples)
    .action((paths: readonly string[], options: Given) => submit(paths, options, io));
}

async function submit(paths: readonly string[], given: Given, io: CommandProcess): Promise<void> {
  const { service } = readSettings(io.env, { need: ['service'] });
  let interrupted = false;
  let failure: CommandFailure | null = null;
  await untilStopped(
    async (signal) => {
      setMaxListeners(0, signal); // some for each file under way
      const files = await checkAll(paths, io, signal);
      if (signal.aborted) return;
      const results = await withClient(service, given.concurrency, (client) =>
        sendAll(files, given, { service, client, io, signal }),
      );
      if (given.json) io.write(`${JSON.stringify(results)}\n`);
      io.note(`${summary(results, given.wait === true)}\n`);
      failure = failureOf(results, interrupted);
    },
    PATIENCE_MS,
    () => {
      interrupted = true;
    },
  ).catch((error) => {
    throw interrupted ? new CommandFailure('interrupted; nothing else is known', EXIT.interrupted) : error;
  });
  if (failure !== null) throw failure;
  if (interrupted) throw new CommandFailure('interrupted; nothing was sent', EXIT.interrupted);
}

/** @throws CommandFailure unless all files may be sent */
async function checkAll(paths: readonly string[], io: CommandProcess, signal: AbortSignal): Promise<PdfFile[]> {
  const progress = progressLine(io);
  const refused: RefusedFile[] = [];
  const files: PdfFile[] = [];
  const found = await findFiles(paths);
  for (const [index, path] of found.entries()) {
    if (signal.aborted) break;
    progress.show(() => `checking: ${index} of ${counted(found.length, 'file', 'files')}`);
    const checked = typeof path === 'string' ? await checkFile(path, signal).catch(() => null) : path;
    if (checked === null) break;
    if ('reason' in checked) refused.push(checked);
    else files.push(checked);
  }
  progress.clear();
  if (refused.length === 0 || signal.aborted) return files;
  io.note(refused.map(({ path, reason }) => `${printable(path)}: ${reason}\n`).join(''));
  throw new CommandFailure(`${refused.length} of ${counted(found.length, 'file', 'files')} refused; nothing was sent`);
}

interface SendParts {
  readonly service: ServiceSettings;
  readonly client: RecognitionClient;
  readonly io: CommandProcess;
  readonly signal: AbortSignal;
}

async function sendAll(
  files: readonly PdfFile[],
  { documentType, environment, new: anew, wait, concurrency, json }: Given,
  { service, client, io, signal }: SendParts,
): Promise<readonly SubmittedFile[]> {
  const { clock } = io;
  const perSecond = service.requestsPerSecond;
  const progress = progressLine(io);
  const say = (line: string, { problem }: SubmittedFile) => {
    if (json) return;
    progress.clear();
    if (problem === null) io.write(line);
    else io.note(line);
  };
  let done = 0;
  const onFile = (submitted: SubmittedFile) => {
    done += 1;
    say(describeSubmitted(submitted), submitted);
    progress.show(() => `submitting: ${done} of ${counted(files.length, 'file', 'files')} done`);
  };
  const requests = createPatientRequests({ perSecond, clock, signal, onPause: progress.say });
  const wish = { documentType, environment, anew: anew === true };
  const submitted = await submitAll(files, wish, { client, requests, signal, concurrency, onFile });
  progress.clear();
  if (!wait) return submitted;
  return awaitRuns(submitted, {
    ...{ client, clock, signal, concurrency, perSecond },
    onFile: (ended) => say(describeEnded(ended), ended),
    onLook: (open) => progress.show(() => `waiting: ${counted(open, 'run', 'runs')} still processing`),
    onPause: progress.say,
  }).finally(() => progress.clear());
}

function slug(text: string): string {
  if (text.trim() === '') throw new InvalidArgumentError('It is the slug of a document type.');
  return text;
}

function atOnce(text: string): number {
  const number = wholeNumber(text);
  if (number < 1 || number > 16) throw new InvalidArgumentError('It is a whole number from 1 to 16.');
  return number;
}
