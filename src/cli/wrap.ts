/** Text in lines of at most `width`, broken at spaces; a word that is longer stands alone. Pure. */
export function wrap(text: string, width: number): string[] {
  const lines: string[] = [];
  let line = '';
  for (const word of text.split(' ')) {
    const longer = line === '' ? word : `${line} ${word}`;
    if (line !== '' && longer.length > width) {
      lines.push(line);
      line = word;
    } else line = longer;
  }
  return [...lines, line];
}
