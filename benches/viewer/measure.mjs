// How long the built-in viewer takes in a browser: node measure.mjs URL ROUNDS. Prints JSON. PLAYWRIGHT_HOME is the folder with
// node_modules/playwright-core, CHROMIUM the browser (else /usr/bin/chromium).

import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';

const [url = '', given = '9'] = process.argv.slice(2);
const rounds = Math.max(1, Number(given));
const { chromium } = createRequire(`${process.env.PLAYWRIGHT_HOME}/package.json`)('playwright-core');
const browser = await chromium.launch({ executablePath: process.env.CHROMIUM ?? '/usr/bin/chromium', args: ['--no-sandbox', '--disable-gpu'] });

const session = await browser.newBrowserCDPSession();

/**
 * A page of a context of its own that nothing records: Playwright has the browser keep the bodies of all answers in the page's process,
 * which counts as the page's memory. Speaks the browser's protocol.
 */
class BarePage {
  static async open() {
    const { browserContextId } = await session.send('Target.createBrowserContext');
    const { targetId } = await session.send('Target.createTarget', { url: 'about:blank', browserContextId });
    const page = new BarePage((await session.send('Target.attachToTarget', { targetId, flatten: false })).sessionId);
    await page.send('Emulation.setDeviceMetricsOverride', { width: 1280, height: 720, deviceScaleFactor: 1, mobile: false });
    return page;
  }

  constructor(sessionId) {
    this.sessionId = sessionId;
    this.sent = 0;
    this.waiting = new Map();
    session.on('Target.receivedMessageFromTarget', (event) => {
      if (event.sessionId !== sessionId) return;
      const { id, result, error } = JSON.parse(event.message);
      const [resolve, reject] = this.waiting.get(id) ?? [];
      this.waiting.delete(id);
      if (error) reject?.(new Error(error.message));
      else resolve?.(result);
    });
  }

  send(method, params = {}) {
    const id = ++this.sent;
    const message = JSON.stringify({ id, method, params });
    return new Promise((resolve, reject) => {
      this.waiting.set(id, [resolve, reject]);
      session.send('Target.sendMessageToTarget', { sessionId: this.sessionId, message }).catch(reject);
    });
  }

  async evaluate(run, ...given) {
    const expression = `(${run})(...${JSON.stringify(given)})`;
    const { result, exceptionDetails } = await this.send('Runtime.evaluate', { expression, awaitPromise: true, returnByValue: true });
    if (exceptionDetails) throw new Error(exceptionDetails.exception?.description ?? exceptionDetails.text);
    return result.value;
  }

  async goto(url) {
    await this.send('Page.enable');
    await this.send('Page.addScriptToEvaluateOnNewDocument', { source: `(${watch})()` });
    await this.send('Page.navigate', { url });
    while (!(await this.evaluate(() => window.drawn !== undefined && document.querySelector('[data-panel="timeline"] canvas') !== null)));
    await this.evaluate(() => window.drawn());
    await this.settle();
  }

  settle() {
    return this.evaluate(() => window.settled());
  }

  async press(key) {
    await this.send('Input.dispatchKeyEvent', { type: 'keyDown', key, text: key });
    await this.send('Input.dispatchKeyEvent', { type: 'keyUp', key });
    await this.settle();
  }

  async click(selector) {
    await this.evaluate((selector) => document.querySelector(selector).click(), selector);
    await this.settle();
  }

  async drag(from, to, y) {
    const at = (type, x, buttons) => this.send('Input.dispatchMouseEvent', { type, x, y, button: 'left', buttons, clickCount: 1 });
    await at('mouseMoved', from, 0);
    await at('mousePressed', from, 1);
    await at('mouseMoved', to, 1);
    await at('mouseReleased', to, 0);
    await this.settle();
  }

  /** What its process has for itself, in MB, once garbage is collected: its own memory and what it shares with the browser to be drawn. */
  async memory() {
    await this.send('HeapProfiler.collectGarbage');
    const renderers = async () => new Map((await session.send('SystemInfo.getProcessInfo')).processInfo.filter(({ type }) => type === 'renderer').map(({ id, cpuTime }) => [id, cpuTime]));
    const before = await renderers();
    // Its process is the one that works while the page does.
    await this.evaluate(() => {
      for (const start = performance.now(); performance.now() - start < 300;);
    });
    const worked = [...(await renderers())].map(([id, time]) => [time - (before.get(id) ?? 0), id]).sort(([a], [b]) => b - a);
    const status = readFileSync(`/proc/${worked[0][1]}/status`, 'utf8');
    return ['RssAnon', 'RssShmem'].reduce((sum, key) => sum + Number(new RegExp(`${key}:\\s+(\\d+)`).exec(status)?.[1] ?? 0), 0) / 1000;
  }
}

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

/** Opens the page, and notes what that took. */
const open = async (what) => {
  const page = await (await browser.newContext({ viewport: { width: 1280, height: 720 } })).newPage();
  page.setDefaultTimeout(180_000);
  await page.addInitScript(watch);
  await page.goto(url, { waitUntil: 'commit' });
  note(what, await page.evaluate(() => window.drawn()));
  await page.evaluate(() => window.settled());
  return page;
};

const TABS = [['call-tree', 'call tree'], ['functions', 'functions'], ['stack-chart', 'stack chart'], ['heat-map', 'heat map'], ['flame-graph', 'flame graph']];
/** The selected range of a round, in parts of the timeline: each round is about another, so that no answer is known. */
const rangeOf = (round) => [0.1 + (0.3 * round) / rounds, 0.6 + (0.3 * round) / rounds];

const OPENED = 'opened, until timeline and flame graph are drawn';
await (await open(`${OPENED}, for the first time`)).context().close();
for (let round = 1; round < rounds; round++) await (await open(OPENED)).context().close();
const page = await open(OPENED);
const sizes = await page.evaluate(() => {
  const entries = [...performance.getEntriesByType('navigation'), ...performance.getEntriesByType('resource')];
  const sum = (isAnswer) => entries.filter(({ name }) => name.includes('/api/') === isAnswer).reduce((size, { encodedBodySize }) => size + encodedBodySize, 0);
  return { page_kb: sum(false) / 1000, answers_kb: sum(true) / 1000 };
});
const box = await page.locator('[data-panel="timeline"] canvas').first().boundingBox();
for (let round = 0; round < rounds; round++) {
  const [from, to] = rangeOf(round);
  await step(page, 'a range is selected', async () => {
    await page.mouse.move(box.x + box.width * from, box.y + 20);
    await page.mouse.down();
    await page.mouse.move(box.x + box.width * to, box.y + 20);
    await page.mouse.up();
  });
  await step(page, 'the flame graph is inverted', () => page.keyboard.press('i'));
  await step(page, 'and back', () => page.keyboard.press('i'));
  for (const [tab, what] of TABS) {
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
await page.context().close();

/** The tab's memory beyond an empty page's, once it is drawn and after the same steps. */
const memoryOf = async () => {
  // What an empty page has differs with how long its process has waited for it.
  const empties = [];
  for (let count = 0; count < 5; count++) empties.push(await (await BarePage.open()).memory());
  const empty = Math.min(...empties);
  const bare = await BarePage.open();
  await bare.goto(url);
  const drawn = (await bare.memory()) - empty;
  const { x, y, width } = await bare.evaluate(() => document.querySelector('[data-panel="timeline"] canvas').getBoundingClientRect().toJSON());
  for (let round = 0; round < rounds; round++) {
    const [from, to] = rangeOf(round);
    await bare.drag(x + width * from, x + width * to, y + 20);
    for (const key of ['i', 'i']) await bare.press(key);
    for (const [tab] of TABS) await bare.click(`#tab-${tab}`);
    await bare.click('.crumbs-clear');
  }
  return { drawn_mb: drawn, memory_mb: (await bare.memory()) - empty };
};
const at = (sorted, share) => sorted[Math.min(sorted.length - 1, Math.floor(share * sorted.length))];
const rows = [...times].map(([what, list]) => {
  const sorted = [...list].sort((a, b) => a - b);
  return { what, median: at(sorted, 0.5), high: at(sorted, 0.95) };
});
console.log(JSON.stringify({ rows, ...(await memoryOf()), ...sizes }));
await browser.close();
