/**
 * Script of the pages with the state of feeds: every few seconds it fetches its page and changes what differs, so the focus, the
 * selection, the scroll position, open details and typed text stay. A hidden tab sends no requests.
 */
export const LIVE_SCRIPT = `
const PARTS = ['title', 'link[rel=icon]', 'header', 'main', 'style'];
const [gone, pause] = ['gone', 'pause'].map((id) => document.getElementById(id));
let paused = false;
let busy = false;

/** Makes an element equal to another one, and keeps as many of its nodes as possible. */
function change(old, fresh) {
  if (old.isEqualNode(fresh)) return;
  if (old.nodeName !== fresh.nodeName || !(old instanceof Element)) return old.replaceWith(fresh.cloneNode(true));
  for (const { name } of [...old.attributes]) if (name !== 'open' && !fresh.hasAttribute(name)) old.removeAttribute(name);
  for (const { name, value } of fresh.attributes) if (old.getAttribute(name) !== value) old.setAttribute(name, value);
  const [before, after] = [[...old.childNodes], [...fresh.childNodes]];
  before.slice(after.length).forEach((node) => node.remove());
  after.forEach((node, at) => (at < before.length ? change(before[at], node) : old.append(node.cloneNode(true))));
}

async function load() {
  const response = await fetch(location.href, { cache: 'no-store', signal: AbortSignal.timeout(10000) });
  if (!response.ok) throw new Error('HTTP ' + response.status);
  const page = new DOMParser().parseFromString(await response.text(), 'text/html');
  const parts = PARTS.map((part) => [document.querySelector(part), page.querySelector(part)]);
  if (parts.some(([, fresh]) => fresh === null)) throw new Error('not a page of scanfeed');
  return parts;
}

async function update() {
  if (document.hidden || paused || busy) return;
  busy = true;
  try {
    const parts = await load();
    const [old, fresh] = parts.pop();
    if (old.textContent !== fresh.textContent) location.reload(); // another release: its style sheet is not allowed here
    const focused = document.activeElement?.getAttribute('href');
    for (const part of parts) change(...part);
    // Rows of the list change places.
    if (focused !== document.activeElement?.getAttribute('href'))
      document.querySelector('[href="' + CSS.escape(focused ?? '') + '"]')?.focus({ preventScroll: true });
    gone.hidden = true;
  } catch {
    gone.hidden = false;
  }
  busy = false;
}

pause.hidden = false;
pause.addEventListener('click', () => {
  paused = !paused;
  pause.textContent = paused ? 'Resume updates' : 'Pause updates';
  update();
});
document.addEventListener('visibilitychange', update);
setInterval(update, 5000);
`;
