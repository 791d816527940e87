// The page as a whole: its modules, and rules for every file.

import assert from 'node:assert/strict';
import { readFileSync, readdirSync } from 'node:fs';
import { test } from 'node:test';
import { gzipSync } from 'node:zlib';

const ROOT = new URL('../assets/', import.meta.url);
const FILES = readdirSync(ROOT, { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile())
  .map((entry) => `${entry.parentPath ?? entry.path}/${entry.name}`.replace(`${ROOT.pathname.replace(/\/$/, '')}/`, '').replace(/^\/+/, ''));
const read = (file) => readFileSync(new URL(file, ROOT), 'utf8');
const INDEX = read('index.html');

test('every module is a part of the page', () => {
  const seen = new Set();
  const follow = (file) => {
    if (seen.has(file)) return;
    seen.add(file);
    for (const [, path] of read(file).matchAll(/^import \{.*\} from '(.+)';$/gm)) follow(new URL(path, `file:///${file}`).pathname.slice(1));
  };
  follow('main.js');
  const typesOnly = ['context.js'];
  assert.deepEqual([...seen].sort(), FILES.filter((file) => file.endsWith('.js') && !typesOnly.includes(file)).sort());
});

test('the page has no inline script or style, and no address of another host', () => {
  assert.ok(!/<style|\sstyle=|\son\w+=|<script(?![^>]*\ssrc=)/.test(INDEX));
  assert.equal(INDEX.split('{{FIREFOX_URL}}').length, 2);
  for (const file of FILES) if (!file.endsWith('.svg')) assert.ok(!/https?:\/\/[a-z]/.test(read(file)), file);
});

test('text of a profile never becomes markup', () => {
  for (const file of FILES) assert.ok(!/innerHTML|outerHTML|insertAdjacentHTML|document\.write|DOMParser|eval\(|new Function\(/.test(read(file)), file);
});

test('each file says its purpose and is short', () => {
  for (const file of FILES) {
    const text = read(file);
    if (/\.js$/.test(file)) assert.match(text, /^\/\/ [A-Z]/, file);
    if (/\.css$/.test(file)) assert.match(text, /^\/\* [A-Z]/, file);
    assert.ok(text.split('\n').length <= 400, file);
  }
});

test('the page is light', () => {
  // Comments are not sent. Users should not wait for more than 100 kB.
  const sent = (/** @type {string} */ text) => text.split('\n').filter((line) => !/^\s*(\/\/|\/\*\*.*\*\/$|\/\*\*(?!.*\*\/)|\* |\*\/|\*$)/.test(line)).join('\n');
  const size = FILES.reduce((sum, file) => sum + gzipSync(sent(String(read(file)))).length, 0);
  assert.ok(size < 95_000, `${size} bytes`);
});
