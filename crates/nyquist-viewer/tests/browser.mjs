// What people do with the viewer, in a real browser: node browser.mjs SCENARIO URL [JSON]. Ends with a status of 1 where something does not
// hold. CHROMIUM is the browser's path, PLAYWRIGHT_HOME the folder with node_modules/playwright-core.

import assert from 'node:assert/strict';
import { createRequire } from 'node:module';

const [scenario = '', url = '', given = '{}'] = process.argv.slice(2);
const expected = JSON.parse(given);
const { chromium } = createRequire(`${process.env.PLAYWRIGHT_HOME}/package.json`)('playwright-core');

const browser = await chromium.launch({
  executablePath: process.env.CHROMIUM, headless: true, args: ['--no-sandbox', '--disable-gpu', '--no-first-run', '--disable-background-networking'],
});
const context = await browser.newContext({ viewport: { width: 1280, height: 720 }, colorScheme: 'light' });
const page = await context.newPage();
page.setDefaultTimeout(30_000);

/** What the browser complains of, and requests to other hosts. */
const faults = [];
page.on('pageerror', (error) => faults.push(`error: ${error}`));
page.on('console', (message) => message.type() === 'error' && faults.push(`console: ${message.text()}`));
page.on('dialog', (dialog) => faults.push(`dialog: ${dialog.message()}`) && dialog.dismiss());
page.on('request', (request) => new URL(request.url()).host !== new URL(url).host && faults.push(`request: ${request.url()}`));

const panel = (name) => page.locator(`[data-panel="${name}"]`);
const tab = async (name) => {
  await page.locator(`#tab-${name}`).click();
  await panel(name).waitFor();
};
const rows = () => panel('functions').locator('.function-row');
const rowOf = (name) => rows().filter({ hasText: name }).first();
/** The API's answer, asked as the page asks it. */
const api = (question) => page.evaluate(async (path) => (await fetch(path)).json(), `api/v1/${question}`);
const open = async (to = url) => {
  await page.goto(to);
  await panel('flame-graph').or(panel('functions')).first().waitFor();
};
/** The share of a canvas that is not its most frequent colour. */
const painted = (selector) => page.locator(selector).first().evaluate((canvas) => {
  const { data } = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height);
  const counts = new Map();
  for (let at = 0; at < data.length; at += 4) {
    const color = `${data[at]},${data[at + 1]},${data[at + 2]},${data[at + 3]}`;
    counts.set(color, (counts.get(color) ?? 0) + 1);
  }
  return 1 - Math.max(...counts.values()) / (data.length / 4);
});
const until = async (what, holds) => {
  const end = Date.now() + 30_000;
  while (!(await holds())) {
    assert.ok(Date.now() < end, what);
    await page.waitForTimeout(50);
  }
};

const scenarios = {
  /** The numbers of the list are those of the report: `expected.functions` is a list of names with their shares in per cent. */
  async numbers() {
    await open();
    await until('the flame graph is drawn', async () => (await painted('[data-panel="flame-graph"] canvas')) > 0.05);
    await until('the timeline is drawn', async () => (await painted('[data-panel="timeline"] canvas')) > 0.01);
    await tab('functions');
    for (const { name, own, total } of expected.functions) {
      const shares = await rowOf(name).locator('.share').allTextContents();
      assert.deepEqual(shares.map((text) => parseFloat(text)), [own, total], name);
    }
    await rowOf(expected.functions[0].name).click();
    await panel('callers').getByText(expected.caller, { exact: true }).first().waitFor();
  },

  /** Trees, search, transforms and the inverted tree. */
  async views() {
    await open();
    await tab('call-tree');
    const items = panel('call-tree').locator('[role=treeitem]');
    await items.filter({ hasText: expected.leaf }).first().waitFor();
    await panel('call-tree').getByRole('button', { name: 'Inverted' }).click();
    await until('the inverted tree begins with the hottest function', async () => (await items.first().innerText()).includes(expected.leaf));
    assert.match(page.url(), /inverted/);
    await page.keyboard.press('/');
    await page.keyboard.type(expected.leaf);
    await page.locator('#search-share').filter({ hasText: '%' }).waitFor();
    const { matched, weight } = await api(`search?q=${expected.leaf}`);
    assert.equal(parseFloat(await page.locator('#search-share').innerText()), Math.round((1000 * matched) / weight) / 10);
    await page.locator('#search').press('Enter');
    await page.getByText('Only samples without', { exact: true }).click();
    await page.locator('[data-crumb=filters]').waitFor();
    await tab('functions');
    await until('the filter hides the function', async () => (await rowOf(expected.leaf).count()) === 0);
    await page.locator('[data-crumb=filters] button').click();
    await rowOf(expected.leaf).waitFor();
    await tab('stack-chart');
    await until('the stack chart is drawn', async () => (await painted('[data-panel="stack-chart"] canvas')) > 0.01);
    await tab('markers');
    await tab('info');
    await panel('info').getByText(expected.program).first().waitFor();
  },

  /** A range that is dragged, and the address that brings it back. */
  async range() {
    await open();
    await tab('functions');
    await rowOf(expected.leaf).waitFor();
    const { x, y, width, height } = await panel('timeline').locator('canvas').first().boundingBox();
    await page.mouse.move(x + width * 0.3, y + height / 2);
    await page.mouse.down();
    await page.mouse.move(x + width * 0.6, y + height / 2, { steps: 5 });
    await page.mouse.up();
    await page.locator('[data-crumb=ranges]').waitFor();
    const range = new URL(page.url()).searchParams.get('range') ?? '';
    const [start, end] = range.split('-').slice(-2).map(Number);
    assert.ok(start > 0 && end > start, `no range in ${page.url()}`);
    const whole = await api('info');
    const share = (end - start) / (whole.end_ns - whole.start_ns);
    assert.ok(share > 0.27 && share < 0.33, `the range is ${share} of the whole`);
    const answer = await api(`functions?range=${start}-${end}`);
    const [number, own] = answer.rows[0];
    const shown = () => rows().first().innerText();
    await until('the list is that of the range', async () => {
      const text = await shown();
      return text.includes(answer.functions[number].name) && text.includes(`${((100 * own) / answer.weight).toFixed(1)}%`);
    });
    const before = [page.url(), await shown(), await page.locator('[data-crumb]').allTextContents()];
    await page.reload();
    await rows().first().waitFor();
    await page.locator('[data-crumb=ranges]').waitFor();
    assert.deepEqual([page.url(), await shown(), await page.locator('[data-crumb]').allTextContents()], before);
    await page.goBack();
    await until('a step back brings the whole range back', async () => (await page.locator('[data-crumb]').count()) === 0);
  },

  /** The source of a function, with its lines' shares, and its instructions. */
  async source() {
    await open();
    await tab('functions');
    await rowOf(expected.leaf).dblclick();
    await panel('source').getByText(expected.text).first().waitFor();
    await panel('source').getByText('%', { exact: false }).first().waitFor();
    await panel('source').getByText(expected.instruction, { exact: false }).first().waitFor();
  },

  /** Names are text, whatever is in them, and nothing grows with them. */
  async hostile() {
    for (const name of ['flame-graph', 'call-tree', 'functions', 'info']) {
      if (name === 'flame-graph') await open();
      await tab(name);
      await page.waitForTimeout(300);
      const { images, scroll, width } = await page.evaluate(() => ({
        images: document.querySelectorAll('img, script:not([src]), iframe').length, scroll: document.documentElement.scrollWidth, width: innerWidth,
      }));
      assert.equal(images, 0, `${name}: markup of a name is in the page`);
      assert.ok(scroll <= width, `${name}: the page is ${scroll} wide in a window of ${width}`);
    }
    await tab('functions');
    const text = await panel('functions').innerText();
    for (const shown of expected.shown) assert.ok(text.includes(shown), `${shown} is not in ${text.slice(0, 2000)}`);
    for (const hidden of expected.hidden) assert.ok(!text.includes(hidden), `${JSON.stringify(hidden)} is in the page as it is`);
  },

  /** Nothing is left by a filter: a sentence, and a way back. */
  async empty() {
    await open(`${url}?tab=functions&focus=no_such_function`);
    await page.getByText('No samples in this selection').first().waitFor();
    await page.getByRole('button', { name: 'Clear the selection' }).first().click();
    await rowOf(expected.leaf).waitFor();
  },

  /** A narrow screen: nothing is wider than it. */
  async narrow() {
    await page.setViewportSize({ width: 400, height: 800 });
    await open();
    for (const name of ['flame-graph', 'call-tree', 'functions', 'stack-chart', 'markers', 'source', 'info']) {
      await tab(name);
      const scroll = await page.evaluate(() => document.documentElement.scrollWidth);
      assert.ok(scroll <= 400, `${name} is ${scroll} wide`);
    }
  },
};

let status = 0;
try {
  await scenarios[scenario]();
  assert.deepEqual(faults, []);
} catch (error) {
  console.error(`${error.stack}\nfaults: ${faults.join('\n')}`);
  status = 1;
}
await browser.close();
process.exit(status);
