// Tests the viewer in a real browser: node browser.mjs SCENARIO URL [JSON]. Ends with status 1 if a check
// fails. CHROMIUM is the browser's path, PLAYWRIGHT_HOME the folder with
// node_modules/playwright-core.

import assert from 'node:assert/strict';
import { mkdtemp, readFile, writeFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

const [scenario = '', url = '', given = '{}'] = process.argv.slice(2);
const expected = JSON.parse(given);
const { chromium } = createRequire(`${process.env.PLAYWRIGHT_HOME}/package.json`)('playwright-core');

const browser = await chromium.launch({
  executablePath: process.env.CHROMIUM, headless: true, args: ['--no-sandbox', '--disable-gpu', '--no-first-run', '--disable-background-networking'],
});
const context = await browser.newContext({ viewport: { width: 1280, height: 720 }, colorScheme: 'light' });

/** Errors of the browser, and requests to other hosts. */
const faults = [];
const newPage = async (of = context) => {
  const opened = await of.newPage();
  opened.setDefaultTimeout(30_000);
  opened.on('pageerror', (error) => faults.push(`error: ${error}`));
  opened.on('console', (message) => message.type() === 'error' && faults.push(`console: ${message.text()}`));
  opened.on('dialog', (dialog) => faults.push(`dialog: ${dialog.message()}`) && dialog.dismiss());
  opened.on('request', (request) => {
    const { protocol, host } = new URL(request.url());
    if (/^(https?|wss?):/.test(protocol) && host !== new URL(url).host) faults.push(`request: ${request.url()}`);
  });
  return opened;
};
let page = await newPage();

const panel = (name) => page.locator(`[data-panel="${name}"]`);
const tab = async (name) => {
  await page.locator(`#tab-${name}`).click();
  await panel(name).waitFor();
};
const rows = () => panel('functions').locator('.function-row');
const rowOf = (name) => rows().filter({ hasText: name }).first();
/** The API's response, requested in the same way as by the page. */
const api = (question) => page.evaluate(async (path) => (await fetch(path)).json(), `api/v1/${question}`);
const open = async (to = url) => {
  await page.goto(to);
  await page.locator('[data-panel]:not([data-panel=timeline])').first().waitFor();
};
/** The share of a canvas that is not its most frequent colour. */
const painted = (selector) => page.locator(selector).first().evaluate((canvas) => {
  if (canvas.width === 0) return 0;
  const { data } = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height);
  const counts = new Map();
  for (let at = 0; at < data.length; at += 4) {
    const color = `${data[at]},${data[at + 1]},${data[at + 2]},${data[at + 3]}`;
    counts.set(color, (counts.get(color) ?? 0) + 1);
  }
  return 1 - Math.max(...counts.values()) / (data.length / 4);
});
/** The file that an item of the share menu saves. */
const saved = async (item) => {
  await page.getByRole('button', { name: 'Share' }).click();
  const [download] = await Promise.all([page.waitForEvent('download'), page.getByRole('menuitem', { name: item }).click()]);
  const path = `${await mkdtemp(join(tmpdir(), 'share-'))}/${download.suggestedFilename()}`;
  await download.saveAs(path);
  return { name: download.suggestedFilename(), bytes: await readFile(path), path };
};
const until = async (what, holds) => {
  const end = Date.now() + 30_000;
  while (!(await holds())) {
    assert.ok(Date.now() < end, what);
    await page.waitForTimeout(50);
  }
};

/** Checks everything in a page from a disk. */
const lookAtFile = async (address) => {
  await open(address);
  await until('the flame graph is drawn', async () => (await painted('[data-panel="flame-graph"] canvas')) > 0.05);
  await until('the timeline is drawn', async () => (await painted('[data-panel="timeline"] canvas')) > 0.01);
  await tab('functions');
  await rowOf(expected.leaf).click();
  await panel('callers').getByText(expected.caller, { exact: true }).first().waitFor();
  await tab('call-tree');
  await panel('call-tree').locator('[role=treeitem]').filter({ hasText: expected.leaf }).first().waitFor();
  await tab('info');
  assert.equal(await page.locator('#tab-source').isVisible(), false);
};

const scenarios = {
  /** The list has the report's numbers: `expected.functions` lists names with their shares in per cent. */
  async numbers() {
    await open();
    await until('the flame graph is drawn', async () => (await painted('[data-panel="flame-graph"] canvas')) > 0.05);
    await until('the timeline is drawn', async () => (await painted('[data-panel="timeline"] canvas')) > 0.01);
    await tab('functions');
    for (const { name, own, total } of expected.functions) {
      await rowOf(name).waitFor();
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
    const { matched, weight } = await api(`search?q=${expected.leaf}`);
    // The share of what was typed so far may be there until the answer comes.
    const share = async () => parseFloat(await page.locator('#search-share').innerText());
    await until('the share is that of the API', async () => (await share()) === Math.round((1000 * matched) / weight) / 10);
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
    await tab('marker-chart');
    await tab('info');
    await panel('info').getByText(expected.program).first().waitFor();
    // Pictures are freed while they are hidden.
    for (const [name, canvas] of [['stack-chart', 'canvas'], ['heat-map', '.heat-canvas'], ['flame-graph', 'canvas'], ['heat-map', '.heat-canvas'], ['stack-chart', 'canvas']]) {
      await tab(name);
      await until(`the ${name} is drawn when it is shown again`, async () => (await painted(`[data-panel="${name}"] ${canvas}`)) > 0.005);
    }
  },

  /** Calls that are all narrower than a pixel, in `expected.depth` levels. */
  async short_calls() {
    await open(`${url}?tab=stack-chart`);
    const canvas = panel('stack-chart').locator('canvas.flame-canvas').first();
    const scroller = panel('stack-chart').locator('.chart-scroller');
    /** The share of the pixels in the middle of a level that have a colour. */
    const seen = async (depth) => {
      const y = depth * 16 + 8 - (await scroller.evaluate((element) => element.scrollTop));
      return canvas.evaluate((element, at) => {
        if (element.width === 0 || at > element.height) return 0;
        const { data } = element.getContext('2d').getImageData(0, at, element.width, 1);
        return data.filter((value, index) => index % 4 === 3 && value > 20).length / element.width;
      }, y);
    };
    for (const depth of [0, 1, 10]) await until(`level ${depth} is drawn`, async () => (await seen(depth)) > 0.98);
    await scroller.evaluate((element) => element.scrollTo(0, element.scrollHeight));
    await until('the last level is drawn once it is in sight', async () => (await seen(expected.depth - 1)) > 0.98);
    await scroller.evaluate((element) => element.scrollTo(0, 0));
    await until('the first level is drawn again', async () => (await seen(0)) > 0.98);
    const { x, y, width } = await canvas.boundingBox();
    await page.mouse.move(x + width / 2, y + 24);
    await page.locator('.tooltip').getByText('Calls too short to be drawn', { exact: false }).waitFor();
    await page.mouse.dblclick(x + width / 2, y + 24);
    await page.locator('[data-crumb=ranges]').waitFor();
  },

  /** Dragging a range, and the address that restores it. */
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
    const [{ function: first, self: own }] = answer.rows;
    const shown = () => rows().first().innerText();
    await until('the list is that of the range', async () => {
      const text = await shown();
      return text.includes(first) && text.includes(`${((100 * own) / answer.weight).toFixed(1)}%`);
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
    await panel('source').locator('.syntax-keyword').getByText('void', { exact: true }).first().waitFor();
    await panel('source').locator('.syntax-function').getByText(expected.leaf, { exact: true }).first().waitFor();
    await panel('source').getByText(expected.instruction, { exact: false }).first().waitFor();
    await page.getByRole('button', { name: 'Callers' }).click();
    await page.getByRole('menuitem', { name: expected.caller }).click();
    await panel('source').locator('.tools-title').getByText(expected.caller, { exact: true }).waitFor();
    await until('the line of the call is marked', async () => {
      const marked = panel('source').getByRole('list', { name: 'Source' }).locator('.marked');
      return (await marked.count()) === 1 && (await marked.textContent()).includes(`${expected.leaf}(`);
    });
  },

  /** Names are text, whatever they contain, and do not make anything grow. */
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
    let text = '';
    for (const shown of expected.shown) {
      await until(`${shown} is in the list`, async () => {
        text = await panel('functions').innerText();
        return text.includes(shown);
      });
    }
    for (const hidden of expected.hidden) assert.ok(!text.includes(hidden), `${JSON.stringify(hidden)} is in the page as it is`);
  },

  /** Saved files: a picture in two formats, the profile, and a file with the selection for use without a server. */
  async share() {
    await open(`${url}?focus=${expected.leaf}`);
    const svg = await saved('Flame graph as SVG');
    assert.ok(svg.name === 'flamegraph.svg' && svg.bytes.toString().startsWith('<?xml') && svg.bytes.includes(`<title>${expected.leaf} (`), svg.name);
    const png = await saved('Flame graph as PNG');
    assert.deepEqual([png.name, png.bytes.subarray(1, 4).toString()], ['flamegraph.png', 'PNG']);
    assert.ok(png.bytes.length > 2000, `a picture of ${png.bytes.length} bytes`);
    const profile = await saved('The profile');
    assert.deepEqual([profile.name, profile.bytes[0], profile.bytes[1]], ['profile.json.gz', 0x1f, 0x8b]);
    const file = await saved('This selection as one HTML file');
    assert.equal(file.name, 'profile.html');
    await tab('functions');
    const row = await rowOf(expected.leaf).innerText();
    page = await newPage(await browser.newContext({ viewport: { width: 1280, height: 720 }, offline: true }));
    await lookAtFile(`file://${file.path}`);
    await tab('functions');
    assert.equal(await rowOf(expected.leaf).innerText(), row);
    await page.keyboard.press('/');
    await page.keyboard.type(expected.leaf);
    await page.locator('#search-share').filter({ hasText: '100%' }).waitFor();
    await page.locator('#search').press('Escape');
    await page.locator('#search-share').filter({ hasText: /^$/ }).waitFor({ state: 'attached' });
    await tab('flame-graph');
    await until('the flame graph is drawn when it is shown again', async () => (await painted('[data-panel="flame-graph"] canvas')) > 0.05);
    const { x, y, width, height } = await panel('flame-graph').locator('canvas').first().boundingBox();
    await page.mouse.move(x + width / 2, y + height - 30);
    await page.locator('.tooltip').getByText('total').waitFor();
    await page.mouse.down();
    await page.mouse.up();
    await page.locator('[data-crumb=transforms]').waitFor();
  },

  /** An exported page, from the disk. */
  async file() {
    await lookAtFile(url);
  },

  /** The stack at a moment, and the heat map, which selects the time between two cells. */
  async moments() {
    await open();
    const track = panel('timeline').locator('.track[data-thread] canvas').first();
    await until('the track is drawn', async () => (await painted('.track[data-thread] canvas')) > 0.01);
    const box = await track.boundingBox();
    const { thread } = (await api('info')).threads[0];
    // On a busy machine, the program may not run at some moments.
    const PARTS = 50;
    const { tracks, start_ns: zero, part_ns: part } = await api(`timeline?parts=${PARTS}&tracks=${thread}`);
    const ran = Array.from({ length: PARTS }, (_, at) => tracks[0].categories.reduce((sum, { ns }) => sum + ns[at], 0));
    let [busiest, frames, functions] = [0, [], {}];
    for (const within of [0.5, 0.3, 0.7, 0.1, 0.9, 0.2, 0.4, 0.6, 0.8]) {
      busiest = ran.indexOf(Math.max(...ran)) + within;
      ({ frames, functions } = await api(`moment?thread=${thread}&time=${Math.round(zero + busiest * part)}`));
      if (frames.length > 0) break;
    }
    assert.ok(frames.length > 0, 'nothing runs in the busiest part');
    await page.mouse.move(box.x + (box.width * busiest) / PARTS, box.y + box.height / 2);
    await page.locator('.tooltip').getByText('It runs').waitFor();
    const shown = await page.locator('.tooltip-frame').allTextContents();
    assert.equal(shown.at(-1), functions[frames[Math.min(frames.length, 12) - 1]].name);
    await tab('heat-map');
    // A program of less than a second has one column.
    await until('the heat map is drawn', async () => (await painted('.heat-canvas')) > 0.005);
    const map = await page.locator('.heat-canvas').boundingBox();
    await page.mouse.move(map.x + 5, map.y + map.height * 0.95);
    await page.mouse.down();
    await page.mouse.move(map.x + 5, map.y + map.height * 0.75, { steps: 3 });
    await page.mouse.up();
    await page.locator('[data-crumb=ranges]').waitFor();
    const [start, end] = (new URL(page.url()).searchParams.get('range') ?? '').split('-').map(Number);
    assert.ok(start > 0 && start < 100e6 && end - start > 100e6 && end - start < 320e6, `${start} to ${end}`);
  },

  /** Two runs compared: the table has the API's values, and the flame graph the colours of the change. */
  async compare() {
    await open();
    await panel('compare').getByText('Slower', { exact: true }).waitFor();
    const answer = await api('diff?unit=ns&limit=1000');
    const first = panel('compare').locator('.compare-row').first();
    assert.ok((await first.innerText()).includes(answer.rows[0].name), await first.innerText());
    assert.equal(answer.rows[0].name, expected.slower);
    assert.match(await first.locator('.change').first().innerText(), /^(\+\d|new)/);
    await page.getByRole('button', { name: 'Shares of the whole' }).click();
    await until('the address says what is compared', () => page.url().includes('unit=share'));
    await panel('compare').locator('.compare-row').first().waitFor();
    await page.getByRole('button', { name: 'Flame graph by change' }).click();
    await until('the flame graph is drawn', async () => (await painted('[data-panel="flame-graph"] canvas')) > 0.05);
    const { x, y, width, height } = await panel('flame-graph').locator('canvas').first().boundingBox();
    await page.mouse.move(x + width / 2, y + height - 12);
    await page.locator('.tooltip').getByText('share before').waitFor();
    // By time, the table and the picture say the same: what is slower is red, and as much slower as in the table.
    await panel('flame-graph').getByRole('button', { name: 'Times' }).click();
    const graph = await api('diff/flamegraph?width=1000');
    const [, start, boxWidth, fn] = graph.boxes.find(([, , , number]) => graph.functions[number].name === expected.slower);
    assert.equal(fn, answer.rows[0].function);
    await until('it is red', async () => {
      const [red, , blue] = await page.locator('[data-panel="flame-graph"] canvas').first().evaluate((canvas, at) => {
        const { data } = canvas.getContext('2d').getImageData(canvas.width * at, canvas.height - 28 * devicePixelRatio, 1, 1);
        return [...data];
      }, (start + boxWidth * 0.9) / graph.weight);
      return red > blue + 30;
    });
    await page.mouse.move(x + (width * (start + boxWidth * 0.9)) / graph.weight, y + height - 30);
    await page.locator('.tooltip').getByText(/^\+3,000 {2}\+300\.0%$/).waitFor();
    assert.match(await page.locator('.facts').innerText(), /before\.folded → after\.folded/);
    await tab('compare');
    await panel('compare').getByText('in before.folded').waitFor();
  },

  /** An event in place of CPU time: what is no time has its place in the timeline, and its numbers are those of the report. */
  async events() {
    await open();
    await page.locator('.time').selectOption(`event ${expected.event}`);
    await page.locator('[data-crumb=event]').waitFor();
    const params = new URLSearchParams({ event: expected.event });
    assert.equal(new URL(page.url()).searchParams.get('event'), expected.event);
    const info = await api(`info?${params}`);
    assert.deepEqual([info.summary.weight * info.interval_ns, info.measure], [expected.count, { name: expected.event, unit: 'count' }]);
    await until('the page says how many', async () => (await page.locator('.facts').innerText()).startsWith(`${expected.count.toLocaleString('en-US')} `));
    const { tracks } = await api(`timeline?${params}&parts=100`);
    assert.equal(tracks[0].categories.reduce((sum, { ns }) => sum + ns.reduce((a, b) => a + b, 0), 0), expected.count);
    await until('the overview is drawn', async () => (await painted('.overview canvas')) > 0);
    await until('the track is drawn', async () => (await painted('.track[data-thread] canvas')) > 0);
    await until('the peak is that of the event', async () => /^peak .+\/s$/.test(await page.locator('.overview .track-time').innerText()));
    await page.goto(`${url}?${params}&tab=stack-chart`);
    const [busiest] = info.threads;
    const { start_ns: zero, part_ns: part, tracks: [track] } = await api(`timeline?${params}&parts=1000&tracks=${busiest.thread}`);
    const sums = track.categories[0].ns.map((_, at) => track.categories.reduce((sum, { ns }) => sum + ns[at], 0));
    const at = sums.indexOf(Math.max(...sums));
    await page.goto(`${url}?${params}&tab=stack-chart&range=${Math.round(zero + Math.max(0, at - 2) * part)}-${Math.round(zero + (at + 3) * part)}`);
    await until('the stack chart is drawn', async () => (await painted('[data-panel="stack-chart"] canvas.flame-canvas')) > 0.001);
    await tab('info');
    const said = panel('info');
    await said.getByText(expected.event, { exact: true }).waitFor();
    // These are facts about time.
    for (const label of ['Sampling interval', 'CPU time without a sample', 'CPUs used, on average']) assert.equal(await said.getByText(label, { exact: true }).count(), 0, label);
    await page.locator('[data-crumb=event] button').click();
    await said.getByText('Sampling interval', { exact: true }).waitFor();
    await until('CPU time is shown again', async () => /CPU time/.test(await page.locator('.facts').innerText()));
    assert.equal(await page.locator('.time option[value="waiting"]:not([hidden])').count(), 0, 'waiting that was not recorded is not offered');
  },

  /** Two thousand threads, an hour at 1 ms, a hundred counters, names of 4,000 characters: all panels are drawn, few nodes are made, and answers are small. */
  async large() {
    await page.addInitScript(() => performance.setResourceTimingBufferSize(10_000));
    const heavy = [];
    const look = async (what) => {
      const { nodes, wide, requests } = await page.evaluate(() => {
        const requests = performance.getEntriesByType('resource').filter(({ name }) => name.includes('/api/')).map(({ name, decodedBodySize }) => [name.replace(/.*\/api\/v1\//, ''), decodedBodySize]);
        performance.clearResourceTimings();
        return { nodes: document.querySelectorAll('*').length, wide: document.documentElement.scrollWidth - innerWidth, requests };
      });
      assert.ok(nodes < expected.nodes, `${what}: ${nodes} nodes`);
      assert.ok(wide <= 0, `${what}: ${wide} pixels too wide`);
      heavy.push(...requests.filter(([, bytes]) => bytes > 1_000_000).map(([name, bytes]) => `${what}: ${name} has ${bytes} bytes`));
    };
    const drawn = (name, canvas = 'canvas') => until(`the ${name} is drawn`, async () => (await painted(`[data-panel="${name}"] ${canvas}`)) > 0.005);
    await open();
    await drawn('flame-graph');
    await drawn('timeline');
    await look('opened');
    for (const name of ['call-tree', 'functions', 'stack-chart', 'heat-map', 'markers', 'marker-chart', 'info']) {
      await tab(name);
      if (name === 'stack-chart') await drawn(name, 'canvas.flame-canvas');
      if (name === 'heat-map') await drawn(name, '.heat-canvas');
      await page.waitForFunction(() => document.querySelectorAll('.status-loading:not([hidden])').length === 0);
      await look(name);
    }
    await open(`${url}?tab=functions&sort=total`);
    const long = rowOf(expected.long.slice(0, 17));
    assert.ok((await long.boundingBox()).height < 40, 'a row is a line');
    await long.click();
    await panel('callers').getByText(expected.caller, { exact: true }).first().waitFor();
    await look('a long name is selected');
    await page.locator('.track-search').fill(expected.thread);
    const found = panel('timeline').locator('.track[data-thread]');
    await until('the thread is found', async () => (await found.count()) === 1);
    await found.first().locator('.track-label').click();
    await page.locator('.track-search').fill('');
    await look('a thread is found');
    const toggle = panel('timeline').locator('.counter-toggle');
    assert.ok((await toggle.innerText()).includes(`${expected.counters} counters`));
    assert.equal(await toggle.getAttribute('aria-expanded'), 'false', 'counters do not push the threads out of sight');
    await toggle.click();
    await panel('timeline').locator('.counter-label').first().waitFor();
    await look('counters are shown');
    await toggle.click();
    await open(`${url}?tab=functions&sort=total&range=600000000000-1200000000000`);
    await rowOf(expected.caller).waitFor();
    await look('a range');
    assert.deepEqual(heavy, []);
  },

  /** Waiting: shares of the waiting, stacks of markers, and their flame graph. */
  async waits() {
    await open();
    await page.locator('.time').selectOption('waiting');
    await page.locator('[data-crumb=time]').waitFor();
    await page.locator('.crumbs-amount').getByText('100% of all waiting').waitFor();
    const whole = await api('info?state=waiting');
    const shown = () => panel('timeline').locator(`.track[data-thread="${whole.threads[0].thread}"] .track-time`).innerText();
    await until('a thread has its waiting', async () => parseFloat(await shown()) >= 1 && /\d s$/.test(await shown()));
    // No more threads wait at a time than there are.
    const { part_ns: part, tracks } = await api('timeline?state=waiting&parts=200');
    const peak = Math.max(...tracks[0].categories[0].ns.map((_, at) => tracks[0].categories.reduce((sum, { ns }) => sum + ns[at], 0))) / part;
    assert.ok(peak <= 2 * whole.threads.length, `${peak} of ${whole.threads.length} threads`);
    await page.goto(`${url}?tab=markers&kind=${encodeURIComponent(expected.kind)}`);
    await panel('markers').locator('.marker-row').filter({ hasText: expected.thread }).first().click();
    await panel('markers').locator('.marker-stack').getByText(expected.function, { exact: true }).waitFor();
    await panel('markers').getByRole('button', { name: 'Flame graph of their stacks' }).click();
    await page.locator('[data-crumb=event]').getByText(expected.kind).waitFor();
    await until('the flame graph is drawn', async () => (await painted('[data-panel="flame-graph"] canvas')) > 0.05);
    const event = encodeURIComponent(`marker:${expected.kind}`);
    const answer = await api(`functions?event=${event}&sort=total`);
    const { kinds } = await api('markers?limit=1');
    const { total_ns: total } = kinds.find(({ name }) => name === expected.kind);
    assert.ok(Math.abs(answer.weight * answer.interval_ns - total) <= 0.01 * total, `${answer.weight * answer.interval_ns} of ${total}`);
    const { rows: waits } = await api(`markers?limit=100&kind=${encodeURIComponent(expected.kind)}`);
    assert.ok(waits.some((wait) => JSON.stringify(wait).includes('Which one')), 'a marker of a lock says which one');
    await page.goto(`${url}?tab=marker-chart`);
    await until('the marker chart is drawn', async () => (await painted('[data-panel="marker-chart"] canvas.flame-canvas')) > 0.01);
    // Kinds of waits have colours of their own.
    const hues = await panel('marker-chart').locator('canvas.flame-canvas').first().evaluate((canvas) => {
      const { data } = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height);
      const found = new Map();
      for (let at = 0; at < data.length; at += 4) {
        const [red, green, blue] = data.slice(at, at + 3);
        const [least, most] = [Math.min(red, green, blue), Math.max(red, green, blue)];
        const hue = { [red]: (green - blue) / (most - least), [green]: 2 + (blue - red) / (most - least), [blue]: 4 + (red - green) / (most - least) }[most];
        if (most - least > 30) found.set(Math.round(hue), (found.get(Math.round(hue)) ?? 0) + 1);
      }
      return [...found].filter(([, pixels]) => pixels > 20).length;
    });
    assert.ok(hues >= 2, `${hues} colours of markers`);
  },

  /** A profile without samples: the reason is shown, and waiting is not offered. */
  async nothing() {
    await open();
    await panel('flame-graph').getByText(expected.reason).waitFor();
    assert.equal(await page.locator('.time').isVisible(), false);
    await tab('heat-map');
    await panel('heat-map').getByText(expected.reason).waitFor();
    assert.equal(await panel('heat-map').locator('.panel-tools').isVisible(), false, 'a legend of nothing');
  },

  /** What a page shows is not changed by its own selections. */
  async unselected() {
    for (const name of ['call-tree', 'functions']) {
      await open(`${url}?tab=${name}`);
      await panel(name).locator('.row.selected').waitFor();
      await page.waitForTimeout(500);
      assert.equal(new URL(page.url()).searchParams.get('function'), null, name);
    }
    await open(`${url}?tab=call-tree`);
    assert.match(await panel('call-tree').locator('.row.selected').innerText(), new RegExp(expected.leaf));
    await tab('source');
    await panel('source').getByText('Select a function').waitFor();
    assert.equal(await panel('source').getByRole('button', { name: 'Callers' }).isVisible(), false, 'callers of no function');
  },

  /** The wheel and the keys zoom and move the time; a search with ! finds the others, and the timeline shows where. */
  async zoom() {
    await open(`${url}?tab=stack-chart`);
    await until('the stack chart is drawn', async () => (await painted('[data-panel="stack-chart"] canvas.flame-canvas')) > 0.01);
    const range = () => (new URL(page.url()).searchParams.get('range') ?? '').split('-').map(Number);
    const { start_ns: first, end_ns: last } = await api('info');
    const box = await panel('timeline').locator('.track[data-thread] canvas').first().boundingBox();
    await page.mouse.move(box.x + box.width * 0.25, box.y + box.height / 2);
    await page.keyboard.down('Control');
    await page.mouse.wheel(0, -100);
    await page.keyboard.up('Control');
    await until('the range is shorter', () => range().length === 2);
    const [start, end] = range();
    assert.ok(Math.abs((end - start) / (last - first) - 0.7) < 0.01, `${start} to ${end}`);
    assert.ok(Math.abs(start + (end - start) * 0.25 - (first + (last - first) * 0.25)) < 0.01 * (last - first), `${start} to ${end}`);
    await panel('stack-chart').locator('.chart-scroller').focus();
    await page.keyboard.press('d');
    await until('the range has moved', () => range()[0] > start);
    await page.keyboard.press('w');
    await until('the range is shorter again', () => range()[1] - range()[0] < (end - start) * 0.75);
    for (let i = 0; i < 5; i++) await page.keyboard.press('s');
    await until('all of the time is shown', () => range().length === 1);
    await tab('functions');
    await page.keyboard.press('/');
    await page.keyboard.type(`!${expected.leaf}`);
    await page.locator('#search-share').filter({ hasText: '%' }).waitFor();
    await until('the list has the others', async () => (await rows().count()) > 0 && (await rowOf(expected.leaf).count()) === 0);
    await page.locator('#search').press('Enter');
    await page.getByRole('menuitem').first().waitFor();
    assert.deepEqual(await page.getByRole('menuitem').allTextContents(), ['Only samples without', 'Stacks without these functions']);
    const all = await api('timeline?parts=1');
    const found = await api(`timeline?parts=1&search=${expected.leaf}`);
    const sum = ({ tracks }) => tracks[0].categories.reduce((total, { ns }) => total + ns[0], 0);
    const { matched, weight } = await api(`search?q=${expected.leaf}`);
    assert.ok(Math.abs(sum(found) / sum(all) - matched / weight) < 0.02, `${sum(found)} of ${sum(all)}`);
  },

  /** Inlined functions are part of the one that holds them: in a served page, or in one from a disk. */
  async compiled() {
    // The list has these two alone: others may push them out of sight.
    const both = encodeURIComponent(`/${expected.inlined}|${expected.holder}/`);
    await open(`${url}?tab=functions&q=${both}`);
    await rowOf(expected.inlined).waitFor();
    const pressed = page.getByRole('button', { name: 'As compiled' });
    await pressed.click();
    await until('the inlined function is gone', async () => (await rows().count()) > 0 && (await rowOf(expected.inlined).count()) === 0);
    await rowOf(expected.holder).waitFor();
    assert.match(page.url(), /compiled=1/);
    await page.reload();
    await rowOf(expected.holder).waitFor();
    assert.equal(await rowOf(expected.inlined).count(), 0, 'the address keeps the switch');
    await tab('call-tree');
    await panel('call-tree').locator('[role=treeitem]').filter({ hasText: expected.holder }).first().waitFor();
    assert.equal(await panel('call-tree').locator('[role=treeitem]').filter({ hasText: expected.inlined }).count(), 0);
    await page.locator('[data-crumb=compiled] button').click();
    await tab('functions');
    await rowOf(expected.inlined).waitFor();
    await page.keyboard.press('n');
    await page.locator('[data-crumb=compiled]').waitFor();
    if (expected.isServed) {
      await page.keyboard.press('n');
      await rowOf(expected.holder).dblclick();
      await panel('source').locator('.code-place').filter({ hasText: expected.inlined }).first().waitFor();
    }
  },

  /** Tracks are hidden and shown, which the address keeps, and a click in a graph selects the stack there. */
  async tracks() {
    await open(`${url}?tab=call-tree`);
    const tracks = panel('timeline').locator('.track[data-thread]');
    const hidden = () => new URL(page.url()).searchParams.get('hidden');
    await until('all tracks are shown', async () => (await tracks.count()) === expected.threads);
    await tracks.nth(1).locator('.track-label').click({ button: 'right' });
    const thread = await tracks.nth(1).getAttribute('data-thread');
    await page.getByRole('menuitem', { name: 'Hide this track' }).click();
    await until('a track is hidden', async () => (await tracks.count()) === expected.threads - 1);
    assert.equal(hidden(), thread);
    await page.reload();
    const show = page.getByRole('button', { name: 'Show 1 hidden track' });
    await show.waitFor();
    await until('the address keeps which is hidden', async () => (await tracks.count()) === expected.threads - 1);
    await show.click();
    await until('it is shown', async () => (await tracks.count()) === expected.threads);
    assert.equal(hidden(), null);
    await tracks.first().focus();
    await page.keyboard.press('Delete');
    await until('the focused one is hidden', async () => (await tracks.count()) === expected.threads - 1);
    await page.getByRole('button', { name: 'Show 1 hidden track' }).click();
    const filled = await tracks.first().locator('canvas').evaluate((canvas) => {
      const at = (/** @type {number} */ share) => canvas.getContext('2d').getImageData(Math.round(canvas.width * share), canvas.height - 3, 1, 1).data[3];
      return [at(0.25), at(0.75)].map((alpha) => alpha > 0);
    });
    assert.deepEqual(filled, [true, false], 'the slice is drawn where it is');
    // The graph of the first thread, at a time when it runs.
    const area = await tracks.first().locator('.graph-area').boundingBox();
    await page.mouse.click(area.x + area.width * 0.25, area.y + area.height / 2);
    const selected = panel('call-tree').locator('.row.selected');
    await until('the stack is selected', async () => (await selected.count()) === 1 && (await selected.innerText()).includes(expected.leaf));
    await page.locator('[data-crumb=threads]').waitFor();
    await page.mouse.click(area.x + area.width * 0.26, area.y + area.height / 2);
    await page.waitForTimeout(200);
    assert.equal(await page.locator('[data-crumb=threads]').count(), 1, 'a second click keeps the thread');
    assert.match(page.url(), /function=\d/);
  },

  /** Functions by file, by crate and by library, each of which leads to its functions. */
  async groups() {
    await open(`${url}?tab=functions`);
    await rowOf(expected.leaf).waitFor();
    const group = (name) => panel('functions').locator('.group-row').filter({ hasText: name }).first();
    await panel('functions').getByRole('button', { name: 'Files', exact: true }).click();
    await group(`${expected.program}.c`).waitFor();
    assert.match(page.url(), /group=file/);
    const answer = await api('groups?by=file');
    const file = answer.rows.find(({ name }) => name?.endsWith(`${expected.program}.c`));
    const shares = await group(`${expected.program}.c`).locator('.share').allTextContents();
    assert.deepEqual(shares.map(parseFloat), [file.self, file.total].map((weight) => Math.round((1000 * weight) / answer.weight) / 10));
    await panel('functions').getByRole('button', { name: 'Libraries', exact: true }).click();
    await group(expected.program).waitFor();
    // Until the answer comes, the page says what it waits for, and has no rows from before the filter.
    let release = () => {};
    const released = new Promise((resolve) => { release = resolve; });
    await page.route(/api\/v1\/functions/, (route) => released.then(() => route.continue()));
    await group(expected.program).click();
    await page.locator('[data-crumb=filters]').waitFor();
    await panel('functions').getByText('Adding up the functions…').waitFor();
    // The groups, which are hidden, have rows, too.
    assert.equal(await panel('functions').locator('.function-row[data-fn]').count(), 0);
    release();
    await page.unroute(/api\/v1\/functions/, { behavior: 'wait' });
    const ofOthers = rows().filter({ has: page.locator('.lib', { hasText: /libc|kernel/ }) });
    await until('only functions of the library are shown', async () => (await ofOthers.count()) === 0 && (await rowOf(expected.leaf).count()) > 0);
  },

  /** The tooltip of a box has the function's amounts in all of its calls. */
  async calls() {
    await open();
    await until('the flame graph is drawn', async () => (await painted('[data-panel="flame-graph"] canvas')) > 0.05);
    const { x, y, width, height } = await panel('flame-graph').locator('canvas').first().boundingBox();
    // The callers are at the bottom: the second row has the first of the calls.
    await page.mouse.move(x + width * 0.1, y + height - 27);
    await page.locator('.tooltip').filter({ hasText: 'in all calls' }).waitFor();
    assert.match(await page.locator('.tooltip').innerText(), /leaf[\s\S]*in all calls[\s\S]*60\.0%/);
  },

  /** Tooltips and titles of rows have the other names of a function's code. */
  async folded() {
    const others = new RegExp(`same code as.*(${expected.names.join('|')})`, 's');
    await open();
    await until('the flame graph is drawn', async () => (await painted('[data-panel="flame-graph"] canvas')) > 0.05);
    const { boxes, weight, functions } = await api('flamegraph?width=1000');
    const [depth, start, boxWidth] = boxes.find(([, , , number]) => expected.names.includes(functions[number].name));
    const { x, y, width, height } = await panel('flame-graph').locator('canvas').first().boundingBox();
    await page.mouse.move(x + (width * (start + boxWidth / 2)) / weight, y + height - 10 - 18 * depth);
    await page.locator('.tooltip').filter({ hasText: others }).waitFor();
    for (const name of ['functions', 'call-tree']) {
      await tab(name);
      const row = panel(name).locator('.row').filter({ hasText: new RegExp(expected.names.join('|')) }).first();
      await row.hover();
      await until(`${name}: the title has the other name`, async () => others.test((await row.getAttribute('title')) ?? ''));
    }
  },

  /** Programs that read the page aloud understand it: axe-core finds nothing. */
  async accessible() {
    const axe = await readFile(`${process.env.PLAYWRIGHT_HOME}/node_modules/axe-core/axe.min.js`, 'utf8');
    const look = async (what) => {
      await page.evaluate(axe);
      const found = await page.evaluate(async () => (await window.axe.run()).violations.map(({ id, nodes }) => `${id}: ${nodes.map(({ html }) => html.slice(0, 200)).join(' ')}`));
      assert.deepEqual(found, [], what);
    };
    for (const scheme of ['light', 'dark']) {
      await page.emulateMedia({ colorScheme: scheme });
      for (const name of ['flame-graph', 'call-tree', 'functions', 'stack-chart', 'heat-map', 'markers', 'marker-chart', 'source', 'info']) {
        await open(`${url}?tab=${name}&counters=1`);
        await page.waitForFunction(() => document.querySelectorAll('.status-loading:not([hidden])').length === 0);
        await look(`${name}, ${scheme}`);
      }
    }
    const { rows: [{ handle }] } = await api(`functions?sort=total&search=${expected.function}&state=waiting`);
    const fn = handle.slice('f-'.length);
    for (const scheme of ['light', 'dark']) {
      await page.emulateMedia({ colorScheme: scheme });
      await open(`${url}?tab=source&state=waiting&function=${fn}`);
      await panel('source').locator('.syntax-keyword').first().click();
      await panel('source').locator('.marked').first().waitFor();
      await look(`source, ${scheme}`);
    }
    await open(`${url}?tab=functions&threads=0&state=waiting`);
    await look('a selection');
    await open(`${url}?tab=functions&group=lib&hidden=0&compiled=1`);
    await panel('functions').locator('.group-row').first().waitFor();
    await look('groups, with a hidden track');
    await open(`${url}?tab=functions&threads=0&state=waiting`);
    await panel('timeline').locator('.track-label').first().click({ button: 'right' });
    await page.getByRole('menu').waitFor();
    await look('the menu of a track');
    await page.keyboard.press('Escape');
    await rows().first().click({ button: 'right' });
    await page.getByRole('menu').waitFor();
    await look('a menu');
  },

  /** Only the program's own code, and a library as one function. */
  async own() {
    await open();
    await tab('functions');
    await rowOf(expected.leaf).waitFor();
    const other = rows().filter({ has: page.locator('.lib', { hasText: /libc|kernel|vdso/ }) });
    await until('functions of others are listed', async () => (await other.count()) > 0);
    await page.getByRole('button', { name: 'My code' }).click();
    await page.locator('[data-crumb=own]').waitFor();
    await until('functions of others are not listed', async () => (await rows().count()) > 0 && (await other.count()) === 0);
    assert.match(page.url(), /own=1/);
    await page.locator('[data-crumb=own] button').click();
    await rowOf(expected.leaf).click({ button: 'right' });
    await page.getByRole('menuitem', { name: `Collapse the library ${expected.program}` }).click();
    await page.locator('[data-crumb=transforms]').getByText(expected.program, { exact: true }).waitFor();
    await until('the library is one function', async () => (await rowOf(expected.leaf).count()) === 0);
  },

  /** More threads than fit on a screen: each has a track once it is visible, and no picture otherwise. */
  async many() {
    await open();
    await page.getByRole('button', { name: /^Show \d+ more$/ }).click();
    const tracks = panel('timeline').locator('.track[data-thread]');
    while ((await tracks.count()) < expected.threads) await page.getByRole('button', { name: /^Show \d+ more$/ }).click();
    const picture = (which) => `.track-list .track:${which} canvas`;
    await tracks.first().scrollIntoViewIfNeeded();
    await until('the first track is drawn', async () => (await painted(picture('first-child'))) > 0.05);
    await until('the last track has no picture', async () => (await painted(picture('last-child'))) === 0);
    await until('the peak is shown', async () => (await panel('timeline').locator('.overview .track-time').innerText()) === 'peak 300 threads');
    await tracks.last().scrollIntoViewIfNeeded();
    await until('the last track is drawn', async () => (await painted(picture('last-child'))) > 0.05);
    await until('the first track has no picture', async () => (await painted(picture('first-child'))) === 0);
    await until('nothing is waited for, or failed', async () => (await panel('timeline').locator('.status:not([hidden])').filter({ hasText: /\w/ }).count()) === 0);
  },

  /** The tracks of the CPUs come first, and one of them can be selected. */
  async cores() {
    await open();
    const { cores } = await api('info');
    assert.ok(cores.length > 0);
    const tracks = panel('timeline').locator('.track[data-thread] .track-name');
    await until('there are tracks', async () => (await tracks.count()) >= cores.length);
    const names = await tracks.allTextContents();
    assert.deepEqual(names.slice(0, cores.length), cores.map(({ name }) => name));
    assert.ok(names.slice(0, cores.length).every((name) => /^CPU \d+$/.test(name)), names.join());
    const busiest = cores.reduce((a, b) => (a.weight >= b.weight ? a : b));
    await until('a CPU has a picture', async () => (await painted(`.track[data-thread="${busiest.thread}"] canvas`)) > 0.01);
    await page.locator(`.track[data-thread="${busiest.thread}"] .track-label`).click();
    await page.locator('[data-crumb=threads]').getByText(busiest.name).first().waitFor();
    await tab('functions');
    await rowOf(expected.leaf).waitFor();
  },

  /** Files dropped onto the page: one is no profile, one is opened, and one is compared with it. */
  async drop() {
    await open();
    const drop = async (name, text) => {
      const data = await page.evaluateHandle(({ name, text }) => {
        const transfer = new DataTransfer();
        transfer.items.add(new File([text], name));
        return transfer;
      }, { name, text });
      await page.dispatchEvent('body', 'drop', { dataTransfer: data });
    };
    await drop('notes.txt', 'this is no profile\u0000');
    await page.getByRole('menuitem', { name: 'Open it' }).click();
    await page.getByText('It was not opened').waitFor();
    assert.match(await page.locator('.drop').innerText(), /not a profile/);
    faults.length = 0; // The browser notes the status of the refusal.
    await page.getByRole('button', { name: 'Close' }).click();
    const choose = (name) => Promise.all([page.waitForEvent('load'), page.getByRole('menuitem', { name }).click()]);
    await drop('before.folded', 'main;slow 1000\nmain;same 1000\n');
    await choose('Open it');
    await tab('functions');
    await rowOf('slow').waitFor();
    assert.equal(await rowOf(expected.leaf).count(), 0);
    const file = await page.evaluate(async () => (await fetch('profile.json')).status);
    assert.equal(file, 200);
    await drop('after.folded', 'main;slow 4000\nmain;same 1000\n');
    await choose('Compare it');
    const first = panel('compare').locator('.compare-row').first();
    await first.waitFor();
    assert.match(await first.innerText(), /slow/);
  },

  /** A running program: the page follows it, can be paused, keeps selection and open rows, and shows its end. */
  async live() {
    await open(`${url}?tab=functions`);
    await rowOf(expected.leaf).waitFor();
    const word = (state) => page.locator(`.live-word[data-state=${state}]`);
    const facts = () => page.locator('.facts').textContent();
    await word('running').waitFor();
    const first = await facts();
    await until('there are more samples', async () => (await facts()) !== first);
    await rowOf(expected.leaf).click();
    await tab('call-tree');
    const selected = () => panel('call-tree').locator('.row.selected');
    await until('the function is selected', async () => (await selected().textContent()).includes(expected.leaf));
    const outer = panel('call-tree').locator('.tree-row[aria-expanded=true]').first();
    await outer.locator('.twisty').click();
    const open_rows = () => panel('call-tree').locator('.tree-row').count();
    const closed = await open_rows();
    const second = await facts();
    await until('there are more samples', async () => (await facts()) !== second);
    assert.equal(await open_rows(), closed, 'a row was opened by a newer profile');
    await page.getByRole('button', { name: 'Pause' }).click();
    await word('paused').waitFor();
    await page.waitForTimeout(500);
    const kept = await facts();
    await page.waitForTimeout(2500);
    assert.equal(await facts(), kept);
    await page.getByRole('button', { name: 'Go on' }).click();
    await until('it goes on', async () => (await facts()) !== kept);
    await page.locator('.last').selectOption('5');
    await page.locator('[data-crumb=last]').waitFor();
    await tab('functions');
    await rowOf(expected.leaf).click();
    const number = await rowOf(expected.leaf).getAttribute('data-fn');
    await until('the address says which', () => new URL(page.url()).searchParams.get('function') === number);
    assert.match(page.url(), /last=5/);
    await page.reload();
    await rowOf(expected.leaf).waitFor();
    await until('the same function is selected', async () => (await panel('functions').locator('.row.selected').getAttribute('data-fn')) === number);
    assert.equal(await page.locator('.last').inputValue(), '5');
    await writeFile(expected.ending, '');
    await word('ended').waitFor();
    await rowOf(expected.leaf).waitFor();
    await until('there is nothing to pause', async () => !(await page.locator('.live-pause').isVisible()));
    assert.equal(await panel('functions').locator('.row.selected').getAttribute('data-fn'), number);
  },

  /** A filter that leaves nothing: a message, and a way back. */
  async empty() {
    await open(`${url}?tab=functions&focus=no_such_function`);
    await page.getByText('No samples in this selection').first().waitFor();
    await page.getByRole('button', { name: 'Clear the selection' }).first().click();
    await rowOf(expected.leaf).waitFor();
  },

  /** On a narrow screen, the names of deep rows, and the ends of long names of threads, are in sight. */
  async deep() {
    await page.setViewportSize({ width: 390, height: 844 });
    await open(`${url}?tab=call-tree`);
    const within = async (locator) => {
      const { x, width } = await locator.boundingBox();
      return x >= 0 && x + width <= 390;
    };
    const row = panel('call-tree').locator('.row.selected');
    await row.waitFor();
    await until('the selected row shows its name', () => within(row.getByText(expected.leaf, { exact: true })));
    await panel('call-tree').locator('[role=tree]').focus();
    await page.keyboard.press('Home');
    await until('the first row shows its name', () => within(row.getByText(expected.root, { exact: true })));
    for (const end of expected.ends) await until(`a label ends with ${end}`, () => within(panel('timeline').locator('.track-name-end').getByText(end, { exact: true })));
  },

  /** A narrow screen: no element is wider. */
  async narrow() {
    await page.setViewportSize({ width: 400, height: 800 });
    await open();
    for (const name of ['flame-graph', 'call-tree', 'functions', 'stack-chart', 'heat-map', 'markers', 'marker-chart', 'source', 'info']) {
      await tab(name);
      await page.waitForFunction(() => document.querySelectorAll('.status-loading:not([hidden])').length === 0);
      const scroll = await page.evaluate(() => document.documentElement.scrollWidth);
      assert.ok(scroll <= 400, `${name} is ${scroll} wide`);
    }
    // Names have the room before notes about them.
    await open(`${url}?tab=stack-chart`);
    const title = panel('stack-chart').locator('.tools-title').filter({ hasText: expected.program });
    await until('the name of the thread is whole', () => title.evaluate((element) => element.scrollWidth <= element.clientWidth));
    const [needed, room] = await page.locator('.track-search').evaluate((input) => {
      const { font, paddingLeft, paddingRight } = getComputedStyle(input);
      const ctx = document.createElement('canvas').getContext('2d');
      ctx.font = font;
      return [ctx.measureText(input.placeholder).width, input.clientWidth - parseFloat(paddingLeft) - parseFloat(paddingRight)];
    });
    assert.ok(needed <= room, `"Find a thread" needs ${needed} of ${room} pixels`);
  },
};

let status = 0;
try {
  await scenarios[scenario]();
  assert.deepEqual(faults, []);
} catch (error) {
  console.error(`${error.stack}\naddress: ${page.url()}\nfaults: ${faults.join('\n')}`);
  status = 1;
}
await browser.close();
process.exit(status);
