// How long the stack chart takes in two viewers, to the same end: the last call that draws on its canvas after its tab is selected for
// the first time. node stack_chart.mjs ROUNDS VIEWER_URL [FIREFOX_PROFILER_URL]. Prints JSON. The rounds of both alternate. Each is in a
// new page. PLAYWRIGHT_HOME and CHROMIUM are as for measure.mjs.

import { createRequire } from 'node:module';

const [rounds = '5', viewer = '', frontEnd = ''] = process.argv.slice(2);
const { chromium } = createRequire(`${process.env.PLAYWRIGHT_HOME}/package.json`)('playwright-core');
const browser = await chromium.launch({ executablePath: process.env.CHROMIUM ?? '/usr/bin/chromium', args: ['--no-sandbox', '--disable-gpu'] });

/** Notes when a canvas was drawn on last, and how often. */
const watch = () => {
  window.drawings = new Map();
  for (const name of ['fillRect', 'clearRect', 'fillText', 'strokeRect', 'fill', 'stroke', 'drawImage', 'putImageData']) {
    const original = CanvasRenderingContext2D.prototype[name];
    CanvasRenderingContext2D.prototype[name] = function draw(...args) {
      const seen = window.drawings.get(this.canvas);
      if (seen) {
        seen.last = performance.now();
        seen.count++;
      } else window.drawings.set(this.canvas, { last: performance.now(), count: 1 });
      return original.apply(this, args);
    };
  }
};

/** Waits until nothing was drawn below a selector for a time that is longer than any step. */
const drawn = async ({ selector, start, quiet }) => {
  for (;;) {
    await new Promise((resolve) => setTimeout(resolve, 100));
    const seen = [...document.querySelectorAll(selector)].map((canvas) => window.drawings.get(canvas)).filter((one) => one && one.last > start && one.count > 20);
    const last = Math.max(...seen.map((one) => one.last));
    if (seen.length > 0 && performance.now() - last > quiet) return { ms: last - start, count: seen.reduce((sum, { count }) => sum + count, 0) };
  }
};

const KINDS = [
  { name: 'nyquist', url: viewer, ready: '[data-panel="flame-graph"] canvas', tab: '#tab-stack-chart', chart: '[data-panel="stack-chart"] canvas.flame-canvas' },
  { name: 'Firefox Profiler', url: frontEnd, ready: '.treeViewRow', tab: '.tabBarTabButton:has-text("Stack Chart")', chart: '.stackChartContent canvas' },
].filter(({ url }) => url !== '');

const results = KINDS.map(({ name }) => ({ name, ms: [], drawings: 0 }));
for (let round = 0; round < Number(rounds); round++) {
  for (const [at, { url, ready, tab, chart }] of KINDS.entries()) {
    const page = await (await browser.newContext({ viewport: { width: 1280, height: 720 } })).newPage();
    page.setDefaultTimeout(300_000);
    await page.addInitScript(watch);
    await page.goto(url, { waitUntil: 'commit' });
    await page.locator(ready).first().waitFor();
    // What else the page loads at first is not part of it.
    await page.waitForTimeout(5000);
    const start = await page.locator(tab).first().evaluate((element) => {
      const now = performance.now();
      element.click();
      return now;
    });
    const { ms, count } = await page.evaluate(drawn, { selector: chart, start, quiet: 3000 });
    results[at].ms.push(Math.round(ms));
    results[at].drawings = count;
    if (process.env.PICTURES) await page.screenshot({ path: `${process.env.PICTURES}/stack-chart-${at}.png` });
    await page.context().close();
  }
}
console.log(JSON.stringify(results));
await browser.close();
