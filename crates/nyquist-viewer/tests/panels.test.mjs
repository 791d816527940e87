// The logic of the panels: the positions of boxes, the contents of rows, the requested parts.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { niceStep, ticks, toTime, toX } from '../assets/axis.js';
import { addRows, emptyModel, hottest, indent, rowsOf } from '../assets/panels/call_tree/model.js';
import { boxAt, boxOfPath, layoutOf, neighbour, pathOf } from '../assets/panels/flame_graph/layout.js';
import { changeOf } from '../assets/panels/flame_graph/change.js';
import { contentHeight, rowAt, rowTop, rowsBeyond, rowsInView, scrollTo } from '../assets/panels/flame_graph/view.js';
import { PAGE, addPage, emptyPages, missingPage } from '../assets/panels/functions/pages.js';
import { hottestLine, instructionLines, sourceLines } from '../assets/panels/source/lines.js';
import { boxAt as chartBoxAt, levelsInSight, rowsOf as chartRows, stretches } from '../assets/panels/stack_chart/layout.js';
import { LABEL, LANE, at as markerAt, heightOf, place, visiblePart } from '../assets/panels/marker_chart/layout.js';
import { at, partsFor, peak, scaleTop, stack } from '../assets/panels/timeline/graph.js';
import { patternOf } from '../assets/panels/functions/groups.js';
import { chooseTracks, shortDetails, threadNames } from '../assets/panels/timeline/tracks.js';
import { cellAt, columnWidth, columnsOf, heatOf, rangeOfCells } from '../assets/panels/heat_map/cells.js';
import { rowsOf as compareRows, summaryOf } from '../assets/panels/compare/rows.js';
import { partAt, peakOf, valueText } from '../assets/panels/timeline/values.js';
import { changeBox, moduleOf } from '../assets/color.js';
import { matcher } from '../assets/pattern.js';

const FLAME = layoutOf([[0, 0, 90, 4, 0], [0, 90, 10, 5, 10], [1, 0, 50, 6, 20], [1, 50, 30, 7, 30], [2, 10, 30, 6, 30]], 100);

test('the flame graph finds the box at a place, and its path', () => {
  assert.equal(boxAt(FLAME, 1, 49.9).fn, 6);
  assert.equal(boxAt(FLAME, 1, 50).fn, 7);
  assert.equal(boxAt(FLAME, 1, 85), null);
  assert.equal(boxAt(FLAME, 9, 1), null);
  assert.deepEqual(pathOf(boxAt(FLAME, 2, 11)), [4, 6, 6]);
  assert.equal(boxOfPath(FLAME, [4, 6, 6]), boxAt(FLAME, 2, 11));
  assert.equal(boxOfPath(FLAME, [5, 6]), null);
});

test('the peak of a level is where it is first highest', () => {
  assert.deepEqual(peakOf({ values: [1, 3, 8, 8, 2], is_level: true }), { value: 8, share: 0.5 });
  assert.deepEqual(peakOf({ values: [5, 1], is_level: true }), { value: 5, share: 0.25 });
  // A level that does not change has none, and amounts have none.
  assert.equal(peakOf({ values: [4, 4], is_level: true }), null);
  assert.equal(peakOf({ values: [1, 3], is_level: false }), null);
});

test('arrow keys lead to callers, the widest callee and neighbours', () => {
  const first = neighbour(FLAME, null, 'in');
  assert.equal(first.fn, 4);
  const child = neighbour(FLAME, first, 'in');
  assert.deepEqual([child.fn, neighbour(FLAME, child, 'right').fn, neighbour(FLAME, child, 'out').fn], [6, 7, 4]);
  assert.equal(neighbour(FLAME, child, 'left'), null);
  assert.equal(neighbour(FLAME, boxAt(FLAME, 2, 11), 'in'), null);
});

test('rows are where they are drawn, from the bottom and from the top', () => {
  for (const icicle of [true, false]) {
    for (const scroll of [0, 37]) {
      const view = { icicle, parents: 2, depth: 50, height: 300, scroll };
      const [first, last] = rowsInView(view);
      assert.ok(last > first);
      for (let row = first; row <= last; row++) assert.equal(rowAt(view, rowTop(view, row) + 5), row);
      assert.ok(contentHeight(view) > view.height);
    }
  }
  const view = { icicle: false, parents: 0, depth: 50, height: 300, scroll: 0 };
  assert.equal(rowsBeyond(view), 0);
  assert.ok(rowsBeyond({ ...view, icicle: true }) > 30);
  assert.equal(rowsBeyond({ ...view, depth: 3 }), 0);
  assert.equal(rowsBeyond({ ...view, depth: 0 }), 0);
  assert.ok(rowTop({ ...view, scroll: scrollTo(view, 0) }, 0) <= 300 - 18);
});

test('threads of one name have their ids', () => {
  const thread = (number, name, tid) => ({ thread: number, name, tid, process: 0, process_name: 'app', pid: '7', weight: 1, markers: 0, start_ns: 0, end_ns: 1 });
  const names = threadNames({ threads: [thread(0, 'pool', '8'), thread(1, 'pool', '9'), thread(2, 'main', '7')], cores: [thread(3, 'CPU 0', '1')] });
  assert.deepEqual([...names], [[0, 'pool (8)'], [1, 'pool (9)'], [2, 'main'], [3, 'CPU 0']]);
});

test('changes are by time or by share', () => {
  const layout = layoutOf([[0, 0, 30, 4, 30, 0.5]], 40, 20);
  const [box] = layout.rows[0];
  // It had half of 20 and has 30 of 40.
  assert.deepEqual([changeOf(box, layout, 'ns'), changeOf(box, layout, 'share')], [0.5, 0.25]);
  assert.equal(changeOf({ ...box, before: undefined }, layout, 'ns'), null);
});

test('the call tree keeps what it knows and shows what is open', () => {
  const model = emptyModel();
  const row = (path, own, total, hasChildren) => ({ path, handle: `f-${path.split('.').at(-1)}`, self: own, total, has_children: hasChildren });
  addRows(model, '', [row('4', 0, 519, true), row('5', 1, 1, false), row('4.17', 500, 519, true), row('4.17.2', 5, 9, false)], 7);
  model.expanded.add('4').add('4.17');
  assert.deepEqual(rowsOf(model).map(({ path, depth, more }) => [path, depth, more]), [['4', 0, 0], ['4.17', 1, 0], ['4.17.2', 2, 0], ['5', 0, 0], ['', 0, 7]]);
  // It has more time itself than what it calls.
  assert.equal(hottest(model), '4.17');
  model.nodes.get('4.17').own = 8;
  assert.equal(hottest(model), '4.17.2');
  model.expanded.delete('4.17');
  assert.equal(hottest(model), '4.17');
  assert.equal(model.nodes.get('5').children, null);
  addRows(model, '4.17', [row('4.17.2', 5, 9, false), row('4.17.3', 4, 4, false)], 0);
  model.expanded.add('4.17');
  assert.equal(rowsOf(model).length, 6);
});

test('a thousand levels are not indented out of sight', () => {
  assert.ok(indent(1000) < 2500);
  for (let depth = 0; depth < 100; depth++) assert.ok(indent(depth + 1) > indent(depth));
});

test('pages of functions are asked as rows come into view', () => {
  const pages = emptyPages();
  addPage(pages, 0, Array.from({ length: PAGE }, (_, i) => i), 500);
  assert.equal(missingPage(pages, 10), null);
  assert.equal(missingPage(pages, PAGE + 3), PAGE);
  assert.equal(missingPage(pages, 600), null);
});

test('source lines have their amounts, and the hottest is found', () => {
  const source = {
    text: 'a\n\tb\r\n\u202Ec\n', lines: [{ line: 2, self: 4, total: 5 }, { line: 3, self: 0, total: 9 }], assembly: { message: null, instructions: [[4096, 'push %rbp', 3, 3, 12, null], [4097, 'mul', 9, 9, 12, 0], [4100, 'add', 0, 0, 12, 0], [4104, 'cmp', 0, 8, 12, null], [4108, 'call f', 0, 9, 12, 1]],
      places: [['wrapping_mul', 'git:host:core/num.rs:59807616e1fa', 7], ['f', null, null]] },
  };
  const lines = sourceLines(source);
  assert.deepEqual(lines.map(({ label, text, own, total }) => [label, text, own, total]), [['1', 'a', 0, 0], ['2', '    b', 4, 5], ['3', '‹U+202E›c', 0, 9]]);
  assert.equal(hottestLine(lines), 1);
  assert.equal(hottestLine([]), -1);
  const instructions = instructionLines(source, false);
  assert.deepEqual(instructions[0], { label: '1000', line: 12, text: 'push %rbp', own: 3, total: 3, skid: false });
  assert.deepEqual(instructions.map(({ place }) => place), [undefined, 'wrapping_mul  num.rs:7', undefined, undefined, 'f']);
  assert.deepEqual(instructions.map(({ skid }) => skid), [false, true, false, true, false]);
  assert.ok(instructionLines(source, true).every(({ skid }) => !skid), 'precise events have no skid');
  assert.deepEqual(sourceLines({ ...source, text: null }), []);
});

test('the stack chart finds the box at a time', () => {
  const rows = chartRows([[0, 50, 90, 4], [0, 0, 40, 5], [1, 0, 10, 6]]);
  assert.equal(chartBoxAt(rows, 0, 39).fn, 5);
  assert.equal(chartBoxAt(rows, 0, 45), null);
  assert.equal(chartBoxAt(rows, 3, 5), null);
});

test('the levels in sight are asked for, in steps', () => {
  assert.deepEqual(levelsInSight(0, 480), { first: 0, levels: 48 });
  for (let scroll = 0; scroll < 4000; scroll += 7) {
    const { first, levels } = levelsInSight(scroll, 480);
    assert.ok(first % 8 === 0 && first * 16 <= scroll && (first + levels) * 16 >= scroll + 480, `${scroll}`);
  }
});

test('neighbours with one function have one name in the stack chart', () => {
  const [row] = chartRows([[0, 10, 20, 4, 3], [0, 0, 10, 4, 8], [0, 20, 30, 5, 1], [0, 40, 50, 5, 1]]);
  assert.deepEqual(row.map(({ eighths }) => eighths), [8, 3, 1, 1]);
  assert.deepEqual(stretches(row).map(({ start, end, fn }) => [start, end, fn]), [[0, 20, 4], [20, 30, 5], [40, 50, 5]]);
});

test('graphs are stacked by category, in CPUs', () => {
  const layers = stack({ categories: [{ category: 2, ns: [50, 0] }, { category: 1, ns: [100, 25] }] }, 100);
  assert.deepEqual(layers.map(({ category, low, high }) => [category, [...low], [...high]]), [[1, [0, 0], [1, 0.25]], [2, [1, 0.25], [1.5, 0.25]]]);
  assert.equal(peak(layers), 1.5);
  assert.deepEqual(at(layers, 0), [{ category: 1, height: 1 }, { category: 2, height: 0.5 }]);
  assert.equal(peak(stack(undefined, 1)), 0);
  assert.ok(scaleTop(4) >= 4 && scaleTop(0) === 1);
});

test('a graph is not asked in more parts than pixels or sampling intervals', () => {
  assert.equal(partsFor(1200.5, 1e10, 1e6), 1200);
  assert.equal(partsFor(1200, 1e8, 1e6), 100);
  assert.equal(partsFor(9000, 1e12, 1e6), 4096);
  assert.equal(partsFor(100, 10, 1e6), 1);
});

test('the busiest tracks are shown, and those that are selected', () => {
  const threads = Array.from({ length: 50 }, (_, i) => ({ thread: i, name: `worker-${i}`, tid: `${100 + i}`, process_name: 'app', pid: '7' }));
  const { shown, left } = chooseTracks({ threads, cores: [] }, { search: '', limit: 30, selected: [40], hidden: [] });
  assert.deepEqual([shown.length, left, shown.at(-1).thread], [31, 19, 40]);
  assert.equal(chooseTracks({ threads, cores: [] }, { search: 'WORKER-49', limit: 30, selected: [], hidden: [] }).shown.length, 1);
  const cores = [{ thread: 70, name: 'CPU 0', tid: '1', process_name: 'CPU', pid: '0' }];
  const all = chooseTracks({ threads, cores }, { search: '', limit: 30, selected: [], hidden: [] });
  assert.deepEqual([all.shown.length, all.left, all.shown[0].name], [31, 20, 'CPU 0']);
  assert.deepEqual(chooseTracks({ threads, cores }, { search: 'cpu 0', limit: 30, selected: [], hidden: [] }).shown, cores);
  const hidden = chooseTracks({ threads, cores }, { search: '', limit: 30, selected: [1], hidden: [1, 70] });
  assert.deepEqual([hidden.shown.length, hidden.left, hidden.shown[0].thread], [30, 19, 0], 'hidden tracks are not shown, even of selected threads');
  assert.equal(chooseTracks({ threads, cores }, { search: 'worker-1', limit: 30, selected: [], hidden: [1] }).shown.length, 11);
});

test('the functions of a group are found by a pattern', () => {
  const finds = (/** @type {string} */ group, /** @type {string} */ name, /** @type {string} */ text) => new RegExp(patternOf(group, name).slice(1, -1)).test(text);
  assert.ok(finds('file', '/a/b+c.rs', '/a/b+c.rs') && !finds('file', 'b.rs', 'bxrs'));
  assert.ok(finds('module', 'core', '<core::fmt::X as Y>::z') && finds('module', 'golang.org/x/net', 'golang.org/x/net.Dial'));
  assert.ok(!finds('module', 'core', 'score::x') && !finds('module', 'core', 'alloc::core::x'));
});

test('threads of one name are distinguished', () => {
  const thread = (name, tid, process) => ({ name, tid, process, process_name: 'app', pid: `${process}` });
  const one = [thread('a', '1', 7), thread('a', '2', 7), thread('b', '3', 7)];
  assert.deepEqual(one.map(shortDetails(one)), ['1', '2', '']);
  const two = [thread('a', '1', 7), thread('app', '2', 8)];
  assert.deepEqual(two.map(shortDetails(two)), ['app 7', '8']);
});

test('an axis has round ticks, and places are times', () => {
  const scale = { start: 0, end: 10e9, width: 1000 };
  assert.deepEqual(ticks(scale, 0).map(({ label }) => label).slice(0, 3), ['0', '1 s', '2 s']);
  assert.deepEqual([toX(scale, 5e9), toTime(scale, 500), toTime(scale, -5), toTime(scale, 5000)], [500, 5e9, 0, 10e9]);
  assert.deepEqual([niceStep(3), niceStep(11), niceStep(0)], [5, 20, 1]);
  assert.deepEqual([niceStep(11e9, true), niceStep(31e9, true), niceStep(400e9, true), niceStep(400e9)], [20e9, 60e9, 600e9, 500e9]);
  assert.deepEqual(ticks({ start: 5, end: 5, width: 100 }, 0), []);
});

test('a function belongs to its crate, namespace or package, else to its lib', () => {
  const cases = [['alloc::vec::Vec<T>::reserve', 'alloc'], ['<hyper::Conn<I> as core::future::Future>::poll', 'hyper'], ['<&mut tokio::X>::f', 'tokio'],
    ['malloc', 'libc.so.6'], ['github.com/a/b.(*T).M', 'github.com/a/b'], ['java.util.List.add', 'java.util'], ['render app.js:12', 'libc.so.6']];
  for (const [name, module] of cases) assert.equal(moduleOf(name, 'libc.so.6'), module, name);
});

test('patterns match as the API says', () => {
  assert.ok(matcher('VEC')('alloc::vec::Vec'));
  assert.ok(matcher('/^a.*z$/')('abcz'));
  assert.ok(!matcher('/(/')('('));
  assert.ok(!matcher('')('x'));
});

test('a heat map has its cells by column and offset, and selects the time between two', () => {
  const map = { start_ns: 100, end_ns: 1e9 + 600e6, column_ns: 1e9, row_ns: 250e6, rows: 4, cells: [1, 0, 0, 4, 0, 0, 0, 0] };
  assert.equal(columnsOf(map), 2);
  assert.deepEqual([columnWidth(map, 10), columnWidth(map, 1000)], [5, 400]);
  assert.deepEqual([cellAt(map, { width: 10, height: 40 }, 1, 39), cellAt(map, { width: 10, height: 40 }, 9, 1), cellAt(map, { width: 10, height: 40 }, 99, -5)], [0, 7, 7]);
  assert.deepEqual(rangeOfCells(map, 3, 1), [250e6 + 100, 1e9 + 100]);
  assert.deepEqual(rangeOfCells(map, 6, 7)[1], 1.6e9);
  assert.deepEqual([heatOf(0, 4), heatOf(4, 4)], [0, 1]);
});

test('a level is what there is, what is added is a rate', () => {
  const counter = (unit, is_level) => ({ unit, is_level });
  assert.equal(valueText(counter('bytes', true), 3 << 20, 5e8), '3.00 MiB');
  assert.equal(valueText(counter('bytes', false), 1 << 20, 5e8), '2.00 MiB/s');
  assert.equal(valueText(counter('faults', false), 7, 1e9), '7 faults/s');
  assert.equal(valueText(counter('', true), 0.5, 1e9), '0.50');
  assert.deepEqual([partAt(10, 0, 100), partAt(10, 99.9, 100), partAt(10, 500, 100)], [0, 9, 9]);
});

test('a comparison has a heading for each part', () => {
  const self = (change, is_noise) => ({ before: 2e9, after: 2e9 + change, change, relative: change / 2e9, margin: 1e8, confidence: 0.99, is_noise });
  const row = (name, change, is_noise) => ({ function: 1, name, lib: null, self: self(change, is_noise) });
  const answer = { whole: self(1e9, false), rows: [row('a', 1e9, false), row('b', -1e9, false), row('c', 1, true)] };
  assert.deepEqual(compareRows(answer).map(({ title, row: one }) => one?.name ?? title), ['Slower', 'a', 'Faster', 'b', 'Within noise', 'c']);
  assert.equal(summaryOf(answer, 'CPU time', (ns) => `${ns / 1e9} s`), 'CPU time before 2 s, after 3 s: +50.0% ± 5.0%');
});

test('the colour of a change is red where it has grown and blue where it has shrunk', () => {
  assert.deepEqual([changeBox(0.2, false), changeBox(-0.2, true)], ['hsl(8 85% 68%)', 'hsl(215 62% 37%)']);
  assert.match(changeBox(0, false), / 0% 93%/);
});

test('the marker chart finds the bar under the pointer, also a narrow one', () => {
  const rows = [{ thread: 0, name: 'frame', lanes: 2, bars: [[0, 0, 50, 1, 'a'], [1, 40, 90, 1, 'b']] }, { thread: 0, name: 'tick', lanes: 1, bars: [[0, 70, 70, 3, 'c']] }];
  const placed = place(rows);
  assert.equal(heightOf(placed), placed[1].top + placed[1].height);
  assert.equal(markerAt(placed, LABEL + 1, 45, 1).bar[4], 'a');
  assert.equal(markerAt(placed, LABEL + LANE + 1, 45, 1).bar[4], 'b');
  assert.equal(markerAt(placed, placed[1].top + LABEL + 2, 72, 1).bar[4], 'c');
  assert.equal(markerAt(placed, placed[1].top + LABEL + 2, 20, 1).bar, null);
  assert.equal(markerAt(placed, 999, 20, 1), null);
});

test('the label of a bar of the marker chart is in its visible part', () => {
  assert.deepEqual(visiblePart(-900, 910, 500), { start: 0, space: 10 });
  assert.deepEqual(visiblePart(20, 30, 500), { start: 20, space: 30 });
  assert.deepEqual(visiblePart(480, 900, 500), { start: 480, space: 20 });
});
