// The selection: threads, ranges, transforms, and the way back.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { INITIAL, clearSelection, createStore, hideThread, isNarrowed, remove, selectRange, selectThread, set, setRange, stepBack, transform } from '../assets/store.js';
import { moved, zoomed } from '../assets/widgets/time_zoom.js';
import { addTransform, isTransform, parentsOf, removeTransform } from '../assets/transforms.js';

test('a click selects a thread alone, a second one gives all back', () => {
  const one = selectThread(INITIAL, 3, false);
  assert.deepEqual(one.threads, [3]);
  assert.deepEqual(selectThread(one, 5, false).threads, [5]);
  assert.deepEqual(selectThread(one, 3, false).threads, []);
});

test('with Ctrl a thread is added and taken away', () => {
  const two = selectThread(selectThread(INITIAL, 3, true), 1, true);
  assert.deepEqual(two.threads, [1, 3]);
  assert.deepEqual(selectThread(two, 3, true).threads, [1]);
});

test('a range within a range is a step, one beside it takes its place', () => {
  const inner = selectRange(selectRange(INITIAL, [100, 500]), [200, 300]);
  assert.deepEqual(inner.ranges, [[100, 500], [200, 300]]);
  assert.deepEqual(selectRange(inner, [250, 400]).ranges, [[100, 500], [250, 400]]);
  assert.deepEqual(selectRange(inner, [600, 700]).ranges, [[600, 700]]);
});

test('a zoom in a zoom is one step', () => {
  const once = addTransform([], 'focus-subtree:4.17.3');
  assert.deepEqual(addTransform(once, 'focus-subtree:3.8.9'), ['focus-subtree:4.17.3.8.9']);
  assert.deepEqual(addTransform(once, 'focus-subtree:3'), once);
  assert.deepEqual(addTransform([...once, 'merge-function:8'], 'focus-subtree:3.9'), ['focus-subtree:4.17.3', 'merge-function:8', 'focus-subtree:3.9']);
});

test('the same transform twice is one', () => {
  assert.deepEqual(addTransform(['merge-function:8'], 'merge-function:8'), ['merge-function:8']);
});

test('transforms are removed in any order', () => {
  const list = ['focus-function:1', 'merge-function:2', 'drop-function:3'];
  assert.deepEqual(removeTransform(list, 1), ['focus-function:1', 'drop-function:3']);
  assert.deepEqual(removeTransform(['focus-subtree:1.2', 'merge-function:9', 'focus-subtree:2.3'], 0), ['merge-function:9']);
});

test('each caller above a zoom leads back to itself', () => {
  const parents = parentsOf(['merge-function:7', 'focus-subtree:4.17.3'], false);
  assert.deepEqual(parents, [
    { fn: 4, list: ['merge-function:7', 'focus-subtree:4'] }, { fn: 17, list: ['merge-function:7', 'focus-subtree:4.17'] },
  ]);
  assert.deepEqual(parentsOf(['focus-subtree:4.17.3'], true), []);
  assert.deepEqual(parentsOf(['focus-subtree:4.17.3', 'focus-function:3'], false), []);
});

test('a transform of an address is a kind and numbers', () => {
  for (const good of ['focus-function:17', 'focus-subtree:4.17.3', 'collapse-lib:0']) assert.ok(isTransform(good), good);
  for (const bad of ['', 'x', 'focus-function:', 'focus-function:a', 'a:1..2', 'A:1', 'a-:1']) assert.ok(!isTransform(bad), bad);
});

test('one step back takes transforms, filters, ranges and threads, in this order', () => {
  let state = transform(selectRange(selectThread(INITIAL, 1, false), [5, 9]), 'drop-function:2');
  state = stepBack(state);
  assert.deepEqual([state.transforms.length, state.ranges.length, state.threads.length], [0, 1, 1]);
  state = stepBack(stepBack(state));
  assert.equal(isNarrowed(state), false);
  assert.equal(stepBack(state), state);
});

test('clearing keeps what is not a selection', () => {
  const state = clearSelection(set(transform(INITIAL, 'drop-function:2'), { tab: 'functions', time: 'both', search: 'x' }));
  assert.deepEqual(state, { ...INITIAL, tab: 'functions', search: 'x' });
  assert.deepEqual(remove(set(INITIAL, { time: 'waiting' }), 'time', 0), { ...INITIAL });
});

test('a hidden track is hidden once, and its thread stays selected', () => {
  const state = hideThread(hideThread(selectThread(INITIAL, 3, false), 3), 1);
  assert.deepEqual(hideThread(state, 3).hidden, [1, 3]);
  assert.deepEqual([state.threads, isNarrowed(hideThread(INITIAL, 3))], [[3], false]);
});

test('functions as they were compiled are a part of the selection', () => {
  const state = set(INITIAL, { compiled: true });
  assert.ok(isNarrowed(state));
  assert.deepEqual(remove(state, 'compiled', 0), { ...INITIAL });
  assert.deepEqual(clearSelection(state), { ...INITIAL });
});

test('a listener hears of a change with what was before, and of nothing else', () => {
  const store = createStore(INITIAL);
  const heard = [];
  store.subscribe((state, before) => heard.push([state.search, before.search]));
  store.update(set, { search: 'a' });
  store.update(stepBack);
  assert.deepEqual(heard, [['a', '']]);
});

test('zooming keeps the time under the pointer, within the whole', () => {
  assert.deepEqual(zoomed([0, 1000_000], [0, 1000_000], 500_000, 0.5), [250_000, 750_000]);
  assert.deepEqual(zoomed([250_000, 750_000], [0, 1000_000], 250_000, 4), [0, 1000_000]);
  assert.deepEqual(zoomed([0, 2000], [0, 1000_000], 0, 0.1), [0, 1000]);
  assert.deepEqual(moved([0, 100_000], [0, 1000_000], 0.5), [50_000, 150_000]);
  assert.deepEqual(moved([850_000, 950_000], [0, 1000_000], 2), [900_000, 1000_000]);
  assert.deepEqual(setRange({ ...INITIAL, ranges: [[1, 9], [2, 3]] }, [4, 5]).ranges, [[4, 5]]);
});
