import { setMaxListeners } from 'node:events';
import { type Command, Option } from 'commander';
import type { ServiceClient } from '../../service/client.js';
import { text } from '../../settings/kinds.js';
import type { FeedService } from '../../sync/ports/index.js';
import { type CommandProcess, thisProcess } from '../context/command-process.js';
import { type CommonOptions, withOptions } from '../context/common-options.js';
import { CommandFailure, EXIT } from '../context/exit.js';
import { readFeedSettings } from '../context/feed-settings.js';
import { numberOption, optionOf } from '../context/parse-options.js';
import { untilInterrupted } from '../context/stop-signals.js';
import { withService } from '../context/with-service.js';
import { awaitRuns, isOpen } from '../submit/await-runs.js';
import { checkFile, findFiles, type PdfFile, type RefusedFile } from '../submit/pdf-files.js';
import { type SubmittedFile, submitFiles } from '../submit/submit-files.js';
import { counted, printable } from '../terminal/format.js';
import { withProgress } from '../terminal/progress.js';

interface SubmitCommandOptions extends CommonOptions {
  readonly documentType: string;
  readonly environment: 'prod' | 'test';
  readonly new?: true;
  readonly wait?: true;
  readonly concurrency: number;
}

const examples = `
All files are checked before the first one is sent: if a file is empty,
unreadable or not a PDF, nothing is sent. A folder stands for the .pdf files in
it. Repeats are safe: for the same content, document type and environment the
command shows the existing run. No database is needed.

Examples:
  $ scanfeed submit invoice.pdf --document-type rechnung --environment test
  A folder, waiting for the results:
    $ scanfeed submit inbox/ --document-type rechnung --environment prod --wait
  Resubmit the files whose runs have failed:
    $ scanfeed submit inbox/ --document-type rechnung --environment prod --new
  The scan ids, for a script:
    $ scanfeed submit inbox/ --document-type rechnung --environment prod \\
        --json | jq -r '.[].scanId'
  A result:
    $ scanfeed get 6083ce9e-b870-4e2b-8bbd-88dac083ce9e`;

const SLUG = optionOf(text('the slug of a document type', /\S/));

export function register(program: Command, io: CommandProcess = thisProcess): void {
  const command = program
    .command('submit')
    .description('Submit PDFs for recognition: single files, or all PDFs in a folder.')
    .argument('<files...>', 'PDF files, or folders that contain them')
    .requiredOption('--document-type <slug>', 'document type of the files', SLUG)
    .addOption(
      new Option('--environment <name>', 'environment of the runs; there is no default')
        .choices(['prod', 'test'])
        .makeOptionMandatory(),
    )
    .option('--new', 'resubmit files whose runs have failed')
    .option('--wait', 'wait until all runs have completed or failed')
    .option('--concurrency <number>', 'maximum number of files sent at once', numberOption(1, 16), 4);
  withOptions(command, 'settings', 'quiet', 'json')
    .addHelpText('after', examples)
    .action((paths: readonly string[], options: SubmitCommandOptions) => submit(paths, options, io));
}

async function submit(paths: readonly string[], options: SubmitCommandOptions, io: CommandProcess): Promise<void> {
  const { service } = await readFeedSettings(io, { feed: options.feed, need: ['service'] });
  const files = await checkAll(paths, options, io);
  const exitCode = await untilInterrupted(async (signal) => {
    setMaxListeners(0, signal); // several listeners for each file in progress
    const submitted = await withService(service, options.concurrency, io.clock, (paced, client) =>
      submitAll(files, options, { client, service: paced, io, signal, perSecond: service.requestsPerSecond }),
    );
    if (options.json) io.write(`${JSON.stringify(submitted)}\n`);
    io.note(`${summarize(submitted, options.wait === true)}\n`);
    requireResults(submitted);
  });
  if (exitCode !== null) throw new CommandFailure(`interrupted; ${REPEAT}`, exitCode);
}

/** @throws CommandFailure unless all files can be sent */
async function checkAll(paths: readonly string[], options: CommonOptions, io: CommandProcess): Promise<PdfFile[]> {
  const refused: RefusedFile[] = [];
  const files: PdfFile[] = [];
  const found = await findFiles(paths);
  await withProgress(io, options, 'checking', async (progress) => {
    for (const [index, path] of found.entries()) {
      progress.show({ done: index, total: found.length, what: 'files checked' });
      const checked = typeof path === 'string' ? await checkFile(path) : path;
      if ('reason' in checked) refused.push(checked);
      else files.push(checked);
    }
  });
  if (refused.length === 0) return files;
  io.note(refused.map(({ path, reason }) => `${printable(path)}: ${reason}\n`).join(''));
  throw new CommandFailure(`${refused.length} of ${countFiles(found)} refused; nothing was sent`);
}

interface SubmitParts {
  readonly client: ServiceClient;
  readonly service: FeedService;
  readonly io: CommandProcess;
  readonly signal: AbortSignal;
  readonly perSecond: number | null;
}

function submitAll(
  files: readonly PdfFile[],
  options: SubmitCommandOptions,
  { client, service, io, signal, perSecond }: SubmitParts,
): Promise<readonly SubmittedFile[]> {
  const { documentType, environment, new: resubmit, wait, concurrency, json } = options;
  const done = (number: number, what: string) => ({ done: number, total: files.length, what });
  return withProgress(io, options, done(0, 'files submitted'), async (progress) => {
    const print = (line: string, { problem }: SubmittedFile) => {
      if (json) return;
      progress.clear();
      if (problem === null) io.write(line);
      else io.note(line);
    };
    const common = { service, clock: io.clock, signal, concurrency, onPause: progress.say };
    let sent = 0;
    const submitted = await submitFiles(files, {
      ...common,
      ...{ client, perSecond, documentType, environment, resubmitFailed: resubmit === true },
      onFile: (file) => {
        sent += 1;
        print(describeSubmitted(file), file);
        progress.show(done(sent, 'files submitted'));
      },
    });
    if (!wait) return submitted;
    let open = submitted.filter(isOpen).length;
    const showFinished = () => progress.show(done(files.length - open, 'runs finished'));
    showFinished();
    return awaitRuns(submitted, {
      ...common,
      onFile: (file) => {
        open -= 1;
        print(describeEnded(file), file);
        showFinished();
      },
    });
  });
}

/** One line about a file after its submission; empty for a file that was not sent. */
function describeSubmitted(submitted: SubmittedFile): string {
  if (submitted.outcome === 'not_sent') return '';
  return `${printable(submitted.file)}: ${describeOutcome(submitted)}\n`;
}

function describeOutcome({ outcome, scanId, status, problem }: SubmittedFile): string {
  const id = printable(scanId ?? '');
  if (outcome === 'submitted') return `submitted as ${id}`;
  if (outcome === 'failed') return `not submitted: ${printable(problem?.message ?? '')}`;
  if (outcome === 'unknown') return `may or may not have been submitted: ${printable(problem?.message ?? '')}`;
  if (outcome === 'interrupted') return 'interrupted in transit: may or may not have been submitted';
  const again = status === 'failed' ? '; --new submits it again' : '';
  return `submitted before as ${id}${status === null ? '' : `: ${status}`}${again}`;
}

function describeEnded({ file, scanId, status, failureReason, error, problem }: SubmittedFile): string {
  const reason = failureReason === null ? '' : ` (${printable(failureReason)})`;
  const quote = error === null ? '' : `; the service says: "${printable(error)}"`;
  const state = problem === null ? `${status}${reason}${quote}` : `state unknown: ${printable(problem.message)}`;
  return `${printable(file)}: ${printable(scanId ?? '')}: ${state}\n`;
}

function summarize(files: readonly SubmittedFile[], waited: boolean): string {
  const count = (matches: (file: SubmittedFile) => boolean) => files.filter(matches).length;
  const parts: readonly (readonly [number, string])[] = [
    [count(({ outcome }) => outcome === 'submitted'), 'submitted'],
    [count(({ outcome }) => outcome === 'repeated'), 'submitted before'],
    [count(({ outcome }) => outcome === 'failed'), 'not submitted'],
    [count(({ outcome }) => outcome === 'unknown'), 'possibly submitted'],
    [count(({ outcome }) => outcome === 'interrupted'), 'interrupted in transit'],
    [count(({ outcome }) => outcome === 'not_sent'), 'not sent'],
    [waited ? count(({ status }) => status === 'completed') : 0, 'completed'],
    [count(({ status }) => status === 'failed'), 'failed'],
    [waited ? count(isOpen) : 0, 'still processing'],
  ];
  const nonzero = parts.filter(([number]) => number > 0).map(([number, text]) => `${number} ${text}`);
  return `${countFiles(files)}: ${nonzero.join(', ')}`;
}

function countFiles(files: readonly unknown[]): string {
  return counted(files.length, 'file', 'files');
}

const REPEAT = 'repeat the command to submit the rest; nothing is submitted twice';

/** @throws CommandFailure unless all files have a result */
function requireResults(files: readonly SubmittedFile[]): void {
  const lasting = files.filter(({ problem, status }) => status === 'failed' || problem?.passing === false).length;
  const passing = files.filter(({ problem }) => problem?.passing === true).length;
  if (lasting + passing === 0) return;
  const unsent = files.filter(({ outcome }) => outcome === 'not_sent').length;
  const reason = unsent === 0 ? '' : '; the others were not sent, since they would probably get the same error';
  const message = `${lasting + passing + unsent} of ${countFiles(files)} without a result${reason}`;
  throw lasting > 0 ? new CommandFailure(message) : new CommandFailure(`${message}; ${REPEAT}`, EXIT.tryAgain);
}
