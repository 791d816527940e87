// Colours of the language in source: what is a comment, a keyword, a string, and what hostile source costs.

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { createColoring } from '../assets/panels/source/syntax.js';

/** The parts with a colour of all lines: `kind text`. */
const colored = (file, text) => {
  const lines = text.split('\n');
  const coloring = createColoring(file, lines);
  assert.equal(coloring.reach(lines.length - 1, 10_000), true);
  return lines.map((_, line) => coloring.partsOf(line).filter(([, kind]) => kind).map(([part, kind]) => `${kind} ${part}`));
};

test('each language has its words', () => {
  assert.deepEqual(colored('/a/b.rs', "pub fn run(x: &'a str) -> Vec<u8> { // it's\n  let n = 0x1f + len(\"a\\\"b\"); }"), [
    ['keyword pub', 'keyword fn', 'function run', "type 'a", 'type Vec', "comment // it's"], ['keyword let', 'number 0x1f', 'function len', 'string "a\\"b"'],
  ]);
  assert.deepEqual(colored('a.cpp', '#include <vector>\ntemplate <typename T> class A { virtual int *get() = 0; };'), [
    ['keyword #include <vector>'], ['keyword template', 'keyword typename', 'type T', 'keyword class', 'type A', 'keyword virtual', 'keyword int', 'function get', 'number 0'],
  ]);
  assert.deepEqual(colored('git:github.com/a/b:src/main.go:0123abcd', 'func main() { x := `a\nb` }'), [['keyword func', 'function main', 'string `a'], ['string b`']]);
  assert.deepEqual(colored('a.tsx', 'export const f = (a: number) => `x ${a}` // y')[0].slice(0, 3), ['keyword export', 'keyword const', 'type : number']);
  assert.deepEqual(colored('a.py', 'def f(self):  # "no string"\n    return """a\nb""" if None else 1'), [
    ['keyword def', 'function f', 'comment # "no string"'], ['keyword return', 'comment """a'], ['comment b"""', 'keyword if', 'keyword None', 'keyword else', 'number 1'],
  ]);
  assert.deepEqual(colored('A.java', '/** a */ static final String S = "b";')[0], ['comment /** a */', 'keyword static', 'keyword final', 'type String', 'type S', 'string "b"']);
});

test('only source of a known language has colours', () => {
  for (const file of ['', 'Makefile', 'a.txt', 'rs', 'a.rs.orig']) assert.equal(createColoring(file, ['fn a() {}']), null, file);
});

test('the text is unchanged, and what is longer than a window goes on', () => {
  const source = readFileSync(new URL('../src/bundle.rs', import.meta.url), 'utf8');
  const comment = `/*${' a line of a comment\n'.repeat(400)}*/`;
  const text = `${source.repeat(20)}${comment}\nfn after() {}\n${source.repeat(3)}`;
  const lines = text.split('\n');
  const coloring = createColoring('a.rs', lines);
  // Lines are reached in steps; none is looked at before it is wanted.
  assert.equal(coloring.reach(10, 10_000), true);
  assert.equal(coloring.partsOf(lines.length - 1), undefined);
  while (!coloring.reach(lines.length - 1, 1));
  lines.forEach((line, at) => assert.equal(coloring.partsOf(at).map(([part]) => part).join(''), line));
  const begin = lines.indexOf('/* a line of a comment');
  for (let at = begin; at < begin + 400; at++) assert.equal(coloring.partsOf(at)[0][1], 'comment', `line ${at - begin}`);
  const after = lines.indexOf('fn after() {}');
  assert.deepEqual(coloring.partsOf(after)[0], ['fn', 'keyword']);
});

test('hostile source gets its text, and no endless work', () => {
  const long = 1000;
  for (const file of ['a.rs', 'a.cpp', 'a.go', 'a.ts', 'a.py', 'a.java']) {
    for (const unit of ['a', ' ', '`${', '"\\', '/*', 'return /[', 'f"""{', '#include ', '\u0000<script>', "'", '('.repeat(9)]) {
      const lines = Array.from({ length: 40 }, () => unit.repeat(Math.ceil(long / unit.length)).slice(0, long));
      const coloring = createColoring(file, lines);
      let steps = 0;
      while (!coloring.reach(lines.length - 1, 0)) assert.ok(++steps < 200, `${file} ${unit}`);
      lines.forEach((line, at) => {
        const parts = coloring.partsOf(at);
        if (parts) assert.equal(parts.map(([part]) => part).join(''), line, `${file} ${unit}`);
      });
    }
  }
});
