import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';

const PACKAGE_FOLDER = /^.*\/node_modules\/(?:@[^/]+\/)?[^/]+/;
const LICENCE_FILE = /^(?:licen[cs]e|copying|notice)(?:[.-].*)?$/i;

/** Returns the names, versions and licences of the packages that these modules belong to, as one text. */
export async function licencesOf(modules) {
  const folders = new Set(modules.flatMap((id) => PACKAGE_FOLDER.exec(id.replace(/^\0/, ''))?.[0] ?? []));
  const sections = await Promise.all([...folders].sort().map(licenceOf));
  return `The files in dist/ contain these packages.\n\n${sections.join('\n\n')}\n`;
}

async function licenceOf(folder) {
  const { name, version, license } = JSON.parse(await readFile(join(folder, 'package.json'), 'utf8'));
  const files = (await readdir(folder)).filter((file) => LICENCE_FILE.test(file)).sort();
  const texts = await Promise.all(files.map((file) => readFile(join(folder, file), 'utf8')));
  const title = `${name} ${version} (${license})`;
  return [title, '-'.repeat(title.length), ...texts.map((text) => text.trim())].join('\n');
}
