import { readFile } from 'node:fs/promises';
import type { Page } from 'playwright-core';

/** Contrast of an element with its background by WCAG 2.2, from 1 to 21. */
export interface Contrast {
  readonly what: string;
  readonly ratio: number;
}

export interface Box {
  readonly left: number;
  readonly right: number;
  readonly top: number;
  readonly bottom: number;
}

/** Runs in the page: styles as the browser computed them. */
const CONTRASTS = `(() => {
  const canvas = new OffscreenCanvas(1, 1).getContext('2d', { willReadFrequently: true });
  const rgba = (colour) => {
    canvas.clearRect(0, 0, 1, 1);
    canvas.fillStyle = colour;
    canvas.fillRect(0, 0, 1, 1);
    const [red, green, blue, alpha] = canvas.getImageData(0, 0, 1, 1).data;
    return [red, green, blue, alpha / 255];
  };
  const over = (front, back) => [0, 1, 2].map((at) => front[at] * front[3] + back[at] * (1 - front[3]));
  const behind = (element) => {
    if (element === null) return [255, 255, 255];
    const colour = rgba(getComputedStyle(element).backgroundColor);
    return colour[3] === 1 ? colour : over(colour, behind(element.parentElement));
  };
  const luminance = (colour) => {
    const [red, green, blue] = [0, 1, 2].map((at) => {
      const share = colour[at] / 255;
      return share <= 0.04045 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4;
    });
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
  };
  const ratio = (element, property) => {
    const back = behind(element);
    const front = over(rgba(getComputedStyle(element)[property]), back);
    const [dark, light] = [luminance(front), luminance(back)].sort((one, other) => one - other);
    return (light + 0.05) / (dark + 0.05);
  };
  const isShown = (element) => element.checkVisibility() && element.getBoundingClientRect().width > 0;
  const texts = [];
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const { textContent, parentElement } = walker.currentNode;
    if (textContent.trim() === '' || parentElement.closest('title, desc') || !isShown(parentElement)) continue;
    const property = parentElement.closest('svg') ? 'fill' : 'color';
    texts.push({ what: textContent.trim(), ratio: ratio(parentElement, property) });
  }
  const shapes = [['.line', 'stroke'], ['.bar', 'fill'], ['.failed', 'fill'], ['.state svg', 'color'], ['.feeds .calm svg', 'color']];
  const drawn = shapes.flatMap(([selector, property]) =>
    [...document.querySelectorAll(selector)].slice(0, 1).map((element) => ({ what: selector, ratio: ratio(element, property) })));
  return { texts, drawn };
})()`;

/** Returns what axe-core finds wrong, each with its rule and element. It runs outside of the page's content security policy. */
export async function violationsOn(page: Page): Promise<string[]> {
  await page.evaluate(await readFile('node_modules/axe-core/axe.min.js', 'utf8'));
  return page.evaluate(`axe.run().then(({ violations }) =>
    violations.flatMap(({ id, nodes }) => nodes.map(({ html, failureSummary }) => id + ': ' + html.slice(0, 200) + ' ' + failureSummary)))`);
}

export function measureContrasts(page: Page): Promise<{ texts: Contrast[]; drawn: Contrast[] }> {
  return page.evaluate(CONTRASTS);
}

/** Where what the selector finds is painted, from left to right. */
export async function boxesOf(page: Page, selector: string): Promise<Box[]> {
  const boxes = await page.evaluate<Box[]>(
    `[...document.querySelectorAll(${JSON.stringify(selector)})].map((element) => {
      const { left, right, top, bottom } = element.getBoundingClientRect();
      return { left, right, top, bottom };
    })`,
  );
  return boxes.sort((one, other) => one.left - other.left);
}

/** How far the page reaches beyond the window to the right, in pixels. */
export function overhang(page: Page): Promise<number> {
  return page.evaluate('document.documentElement.scrollWidth - document.documentElement.clientWidth');
}

export interface Spoken {
  readonly role: string;
  readonly name: string;
  readonly description: string;
}

/** What Chromium tells a screen reader, in its order. */
export async function spokenOn(page: Page): Promise<Spoken[]> {
  const session = await page.context().newCDPSession(page);
  const { nodes } = await session.send('Accessibility.getFullAXTree');
  await session.detach();
  const byId = new Map(nodes.map((node) => [node.nodeId, node]));
  const within = (id: string): Spoken[] => {
    const node = byId.get(id);
    if (node === undefined) return [];
    const { ignored, role, name, description, childIds = [] } = node;
    const [own, spokenName, more] = [role, name, description].map((value) => String(value?.value ?? ''));
    const spoken = ignored ? [] : [{ role: own ?? '', name: spokenName ?? '', description: more ?? '' }];
    return [...spoken, ...childIds.flatMap(within)];
  };
  return nodes.filter(({ parentId }) => parentId === undefined).flatMap(({ nodeId }) => within(nodeId));
}
