/** Expressions for the page: the contrast of every text, and what is wider than the screen. */

export const CONTRASTS = `(() => {
  const canvas = document.createElement('canvas').getContext('2d', {willReadFrequently: true});
  const rgba = color => {
    canvas.clearRect(0, 0, 1, 1); canvas.fillStyle = color; canvas.fillRect(0, 0, 1, 1);
    return [...canvas.getImageData(0, 0, 1, 1).data];
  };
  const light = ([r, g, b]) => [r, g, b].map(v => v / 255)
    .map(v => v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4)
    .reduce((sum, v, k) => sum + v * [0.2126, 0.7152, 0.0722][k], 0);
  const behind = node => {
    for (let e = node; e; e = e.parentElement) {
      const color = rgba(getComputedStyle(e).backgroundColor);
      if (color[3] === 255) return color;
    }
    return [255, 255, 255, 255];
  };
  // on a shape of a drawing: the shape that was drawn last at the middle of the text
  const shape = node => {
    const box = node.getBoundingClientRect(), x = box.x + box.width / 2, y = box.y + box.height / 2;
    const under = document.elementsFromPoint(x, y).find(e => ['rect', 'circle'].includes(e.tagName) && getComputedStyle(e).fill !== 'none');
    if (!under) return null;
    const [r, g, b] = rgba(getComputedStyle(under).fill), share = parseFloat(getComputedStyle(under).opacity), paper = behind(under);
    return [r, g, b].map((v, k) => v * share + paper[k] * (1 - share));
  };
  const found = [], walk = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walk.nextNode()) {
    const node = walk.currentNode.parentElement, text = walk.currentNode.textContent.trim();
    if (!text || !node.checkVisibility() || ['title', 'SCRIPT', 'STYLE', 'NOSCRIPT', 'OPTION'].includes(node.tagName) || node.closest('.skip')) continue;
    if (node.closest('button:disabled')) continue;
    const drawn = node.namespaceURI.endsWith('svg');
    if (drawn) node.scrollIntoView({block: 'center'});
    const style = getComputedStyle(node), ink = rgba(drawn ? style.fill : style.color);
    const [dark, bright] = [light(ink), light((drawn && shape(node)) || behind(node))].sort((a, b) => a - b);
    found.push({text: text.slice(0, 40), ratio: (bright + 0.05) / (dark + 0.05)});
  }
  return found;
})()`;

export const WIDER = `[...document.querySelectorAll('body *')]
  .filter(e => e.checkVisibility() && e.getBoundingClientRect().right > innerWidth + 1 && !e.closest('.scroll, .tabs, .visually-hidden'))
  .map(e => e.outerHTML.slice(0, 80))`;
