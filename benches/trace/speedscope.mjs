// How long speedscope takes to read a file in a browser: node speedscope.mjs PACKAGE FILE, where PACKAGE is the folder of its npm
// package. Prints JSON: the seconds until it shows the file, and the tab's memory then. PLAYWRIGHT_HOME is the folder with
// node_modules/playwright-core, CHROMIUM the browser (else /usr/bin/chromium).

import { createReadStream, readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { createRequire } from 'node:module';
import { basename, extname, join } from 'node:path';

const [folder = '', file = ''] = process.argv.slice(2);
const { chromium } = createRequire(`${process.env.PLAYWRIGHT_HOME}/package.json`)('playwright-core');

const types = { '.html': 'text/html', '.js': 'text/javascript', '.css': 'text/css', '.wasm': 'application/wasm' };
const server = createServer((request, response) => {
  const name = basename(new URL(request.url ?? '/', 'http://localhost').pathname) || 'index.html';
  response.setHeader('Content-Type', types[extname(name)] ?? 'application/octet-stream');
  const stream = createReadStream(join(folder, 'dist/release', name));
  stream.on('error', () => { response.statusCode = 404; response.end(); });
  stream.pipe(response);
});
await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));

const args = ['--no-sandbox', '--disable-gpu', '--enable-precise-memory-info', '--js-flags=--max-old-space-size=12000'];
const browser = await chromium.launch({ executablePath: process.env.CHROMIUM ?? '/usr/bin/chromium', args });

/** The memory in MB of all processes below one. */
const memory = (pid) => {
  const read = (path) => { try { return readFileSync(path, 'utf8'); } catch { return ''; } };
  const own = Number(/RssAnon:\s+(\d+)/.exec(read(`/proc/${pid}/status`))?.[1] ?? 0) / 1000;
  const children = read(`/proc/${pid}/task/${pid}/children`).split(' ').filter(Boolean);
  return children.reduce((sum, child) => sum + memory(child), own);
};

try {
  const page = await browser.newPage();
  page.setDefaultTimeout(600_000);
  await page.goto(`http://127.0.0.1:${server.address().port}/index.html`);
  const input = page.locator('input[type="file"]').first();
  await input.waitFor({ state: 'attached' });
  const failed = new Promise((_, reject) => {
    page.on('dialog', (dialog) => reject(new Error(`speedscope says: ${dialog.message()}`)));
    page.on('crash', () => reject(new Error('the tab crashed')));
  });
  const before = memory(process.pid);
  let most = before;
  const poll = setInterval(() => { most = Math.max(most, memory(process.pid)); }, 50);
  const start = performance.now();
  await input.setInputFiles(file);
  // It puts the name of what it shows into the title.
  const shown = page.waitForFunction((name) => document.title.includes(name), basename(file), { polling: 50 });
  await Promise.race([shown, failed]);
  const seconds = (performance.now() - start) / 1000;
  clearInterval(poll);
  console.log(JSON.stringify({ seconds, memory_mb: most - before }));
} finally {
  await browser.close();
  server.close();
}
