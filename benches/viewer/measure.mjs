// How long the built-in viewer takes in a browser: node measure.mjs URL ROUNDS. Prints JSON. PLAYWRIGHT_HOME is the folder with
// node_modules/playwright-core, CHROMIUM the browser (else /usr/bin/chromium).

import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';

const [url = '', given = '9'] = process.argv.slice(2);
const rounds = Math.max(1, Number(given));
const { chromium } = createRequire(`${process.env.PLAYWRIGHT_HOME}/package.json`)('playwright-core');
const browser = await chromium.launch({ executablePath: process.env.CHROMIUM ?? '/usr/bin/chromium', args: ['--no-sandbox', '--disable-gpu'] });

/** Counts the questions that are not answered yet, and says when all is drawn: two frames without any. */
const watch = () => {
  const original = window.fetch;
  let asked = 0;
  window.fetch = async (...args) => {
    asked++;
    try {
      const answer = await original(...args);
      const text = answer.text.bind(answer);
      answer.text = () => text().finally(() => asked--);
      return answer;
    } catch (error) {
      asked--;
      throw error;
    }
  };
  const frame = () => new Promise((resolve) => requestAnimationFrame(resolve));
  window.settled = async () => {
    let last = performance.now();
    for (let quiet = 0; quiet < 3; quiet++) {
      await frame();
      if (asked > 0) quiet = -1;
      if (quiet <= 0) last = performance.now();
    }
    return last;
  };
  window.drawn = async () => {
    const canvases = () => ['[data-panel="timeline"] canvas', '[data-panel="flame-graph"] canvas'].map((selector) => document.querySelector(selector));
    const isPainted = (canvas) => canvas && canvas.width > 0 && canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height).data.some((value) => value !== 0);
    while (!canvases().every(isPainted)) await frame();
    return performance.now();
  };
};

const times = new Map();
const note = (what, ms) => times.set(what, [...(times.get(what) ?? []), ms]);
/** What a step takes until it is drawn, in the page's clock. */
const step = async (page, what, act) => {
  const start = await page.evaluate(() => performance.now());
  await act();
  note(what, (await page.evaluate(() => window.settled())) - start);
};

const open = async () => {
  const page = await (await browser.newContext({ viewport: { width: 1280, height: 720 } })).newPage();
  page.setDefaultTimeout(180_000);
  await page.addInitScript(watch);
  await page.goto(url, { waitUntil: 'commit' });
  note('opened, until timeline and flame graph are drawn', await page.evaluate(() => window.drawn()));
  await page.evaluate(() => window.settled());
  return page;
};

for (let round = 1; round < rounds; round++) await (await open()).context().close();
const page = await open();
const sizes = await page.evaluate(() => {
  const entries = [...performance.getEntriesByType('navigation'), ...performance.getEntriesByType('resource')];
  const sum = (isAnswer) => entries.filter(({ name }) => name.includes('/api/') === isAnswer).reduce((size, { encodedBodySize }) => size + encodedBodySize, 0);
  return { page_kb: sum(false) / 1000, answers_kb: sum(true) / 1000 };
});
const box = await page.locator('[data-panel="timeline"] canvas').first().boundingBox();
for (let round = 0; round < rounds; round++) {
  // Each round is about another range, so that no answer is known.
  const [from, to] = [0.1 + (0.3 * round) / rounds, 0.6 + (0.3 * round) / rounds];
  await step(page, 'a range is selected', async () => {
    await page.mouse.move(box.x + box.width * from, box.y + 20);
    await page.mouse.down();
    await page.mouse.move(box.x + box.width * to, box.y + 20);
    await page.mouse.up();
  });
  await step(page, 'the flame graph is inverted', () => page.keyboard.press('i'));
  await step(page, 'and back', () => page.keyboard.press('i'));
  for (const [tab, what] of [['call-tree', 'call tree'], ['functions', 'functions'], ['stack-chart', 'stack chart'], ['heat-map', 'heat map'], ['flame-graph', 'flame graph']]) {
    await step(page, `tab: ${what}`, () => page.locator(`#tab-${tab}`).click());
  }
  await step(page, 'a word is searched', async () => {
    await page.locator('#search').fill(`a${round}`);
    await page.locator('#search-share:not(:empty)').waitFor();
  });
  await page.locator('#search').fill('');
  await page.keyboard.press('Escape');
  await step(page, 'a step back', () => page.locator('.crumbs-clear').click());
}
const { processInfo } = await (await browser.newBrowserCDPSession()).send('SystemInfo.getProcessInfo');
const resident = ({ id }) => Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${id}/status`, 'utf8'))?.[1] ?? 0);
const memory = Math.max(0, ...processInfo.filter(({ type }) => type === 'renderer').map(resident));
const at = (sorted, share) => sorted[Math.min(sorted.length - 1, Math.floor(share * sorted.length))];
const rows = [...times].map(([what, list]) => {
  const sorted = [...list].sort((a, b) => a - b);
  return { what, median: at(sorted, 0.5), high: at(sorted, 0.95) };
});
console.log(JSON.stringify({ rows, memory_mb: memory / 1000, ...sizes }));
await browser.close();
