// The page as a whole: its modules, and rules for every file.

import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { readFileSync, readdirSync } from 'node:fs';
import { test } from 'node:test';

const ROOT = new URL('../assets/', import.meta.url);
const filesBelow = (root) => readdirSync(root, { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile())
  .map((entry) => `${entry.parentPath ?? entry.path}/${entry.name}`.replace(`${root.pathname.replace(/\/$/, '')}/`, '').replace(/^\/+/, ''));
const FILES = filesBelow(ROOT);
const read = (file) => readFileSync(new URL(file, ROOT), 'utf8');
const INDEX = read('index.html');

/** Code of others, unchanged: its SHA-256. */
const THIRD_PARTY = {
  'speed-highlight/LICENSE': 'a2010f343487d3f7618affe54f789f5487602331c0a8d03f49e9a7c547cf0499',
  'speed-highlight/languages/c.d.ts': '2255863cbd08edfbc245c47d815253d01cdda4c53a2e35ac13c030de6889a978',
  'speed-highlight/languages/c.js': 'dbd35595aea9544e3ed87a9ffa01cd929150397188e6a974cad7368b6163ee9f',
  'speed-highlight/languages/go.d.ts': '395d6d255458fbea664d1a1aea53214d70a39336a2d70f45a0963aa71635ca76',
  'speed-highlight/languages/go.js': '04e7efdfe9fbc57a231ab80d9226f445a4142d325e45f891897e4a50a7110d88',
  'speed-highlight/languages/java.d.ts': '3fd34fe933dfe0dc1bed2aaad8e7a06a3ad4094563cba0b9a902acb98dd75e42',
  'speed-highlight/languages/java.js': 'a3650a339c639bc8023354956e69bce9f7c000282bf2437b8146c3b22e4cad97',
  'speed-highlight/languages/py.d.ts': '71f88ecdeec183d0bbde7cdbb1710d3bfd161d6572235678712b29ea961a8027',
  'speed-highlight/languages/py.js': 'a09ac971bae2e2c1477c3e8bdf008e1ce52c4954890b416ebc4688088b71070f',
  'speed-highlight/languages/rs.d.ts': '728a7ba29a2af955837cc376b29791dc79f9df1f668b4a0094f8272d8eec24c9',
  'speed-highlight/languages/rs.js': '6b5fb61a5d4174e90ddcbcc30d3322258caeed7e5b69bc84a7b04570b3a6c19b',
  'speed-highlight/languages/ts.d.ts': 'b1ab52c2f48aec594f2218649ef5c70a8db3cdf0f65fe2bb23e990f4133ee1a1',
  'speed-highlight/languages/ts.js': '661cefebd99fe943a8c54ac4392d6d2964ed004133f2b9fb7e55d8caa9b66525',
  'speed-highlight/tokenize.d.ts': '8e9e32b4be83d1eb104ed710aab408771edcc754a73ee9bcaab5b6bcd7685e42',
  'speed-highlight/tokenize.js': '23a517dfe83e6faa11e2d6adff9c663db573c4a48d2010d13e9d81bb43c58af9',
};
const THIRD_PARTY_ROOT = new URL('../third_party/', import.meta.url);

test('every module is a part of the page', () => {
  const [seen, ofOthers] = [new Set(), new Set()];
  const follow = (file) => {
    if (seen.has(file)) return;
    seen.add(file);
    for (const [, path] of read(file).matchAll(/^import \{.*\} from '(.+)';$/gm)) {
      if (path.includes('third_party/')) ofOthers.add(path.split('third_party/')[1]);
      else follow(new URL(path, `file:///${file}`).pathname.slice(1));
    }
  };
  follow('main.js');
  const typesOnly = ['context.js'];
  assert.deepEqual([...seen].sort(), FILES.filter((file) => file.endsWith('.js') && !typesOnly.includes(file)).sort());
  assert.deepEqual([...ofOthers].sort(), Object.keys(THIRD_PARTY).filter((file) => file.endsWith('.js')).sort());
});

test('code of others is unchanged, and makes no elements', () => {
  const hashOf = (file) => createHash('sha256').update(readFileSync(new URL(file, THIRD_PARTY_ROOT))).digest('hex');
  const found = filesBelow(THIRD_PARTY_ROOT).filter((file) => file !== 'README.md').sort();
  assert.deepEqual(Object.fromEntries(found.map((file) => [file, hashOf(file)])), THIRD_PARTY);
  const scripts = found.filter((name) => name.endsWith('.js')).map((file) => [file, String(readFileSync(new URL(file, THIRD_PARTY_ROOT)))]);
  for (const [file, text] of scripts) assert.ok(!/document|window|fetch|import\(|eval|Function\(/.test(text), file);
  const size = scripts.reduce((sum, [, text]) => sum + text.length, 0);
  assert.ok(size < 50_000, `${size} bytes`);
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
