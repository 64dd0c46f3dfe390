import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';

const PACKAGE_FOLDER = /^.*\/node_modules\/((?:@[^/]+\/)?[^/]+)/;
const LICENCE_FILE = /^(?:licen[cs]e|copying|notice)(?:[.-].*)?$/i;

/** Returns the packages that these modules belong to, sorted by their folders. */
export function packagesOf(modules) {
  const found = modules.flatMap((id) => {
    const [folder, name] = PACKAGE_FOLDER.exec(id.replace(/^\0/, '')) ?? [];
    return folder === undefined ? [] : [[folder, name]];
  });
  return [...new Map(found.sort())].map(([folder, name]) => ({ folder, name }));
}

/** Returns the names, versions and licences of the packages that these modules belong to, as one text. */
export async function licencesOf(modules) {
  const sections = await Promise.all(packagesOf(modules).map(({ folder }) => licenceOf(folder)));
  return `The files in dist/ contain these packages.\n\n${sections.join('\n\n')}\n`;
}

async function licenceOf(folder) {
  const { name, version, license } = JSON.parse(await readFile(join(folder, 'package.json'), 'utf8'));
  const files = (await readdir(folder)).filter((file) => LICENCE_FILE.test(file)).sort();
  const texts = await Promise.all(files.map((file) => readFile(join(folder, file), 'utf8')));
  const title = `${name} ${version} (${license})`;
  const given = texts.length > 0 ? texts : [await licenceInReadme(folder)];
  return [title, '-'.repeat(title.length), ...given.map((text) => text.trim())].join('\n');
}

/** Returns the author of a package and the section of its README about the licence. */
async function licenceInReadme(folder) {
  const { author } = JSON.parse(await readFile(join(folder, 'package.json'), 'utf8'));
  const readme = (await readdir(folder)).find((file) => /^readme/i.test(file));
  const text = readme === undefined ? '' : await readFile(join(folder, readme), 'utf8');
  const [section = ''] = /^#+ licen[cs]e[\s\S]*/im.exec(text) ?? [];
  return `Copyright ${typeof author === 'string' ? author : author.name}\n${section.replace(/^#+ .*\n/, '')}`;
}
