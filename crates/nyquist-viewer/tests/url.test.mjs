// The address contains the whole state; an invalid one gives the initial state.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { INITIAL } from '../assets/store.js';
import { fromQuery, selectionParams, toQuery } from '../assets/url.js';
import { isStep } from '../assets/frame/history.js';

const FULL = {
  threads: [0, 3], ranges: [[0, 1000], [10, 20]], time: 'both', event: 'page-faults', counters: false, filters: [{ kind: 'focus', pattern: '/^a::b$/' }, { kind: 'hide', pattern: 'x&y=z' }],
  last: null, transforms: ['focus-function:17', 'focus-subtree:4.17.3'], own: true, compiled: true, hidden: [4, 7], tab: 'call-tree', inverted: true, icicle: true, color: 'category', sort: 'total', group: 'module', unit: 'share',
  search: 'Vec<T> + ü', fn: 17, kind: 'page load',
};

test('the state comes back from its address', () => {
  assert.deepEqual(fromQuery(toQuery(FULL)), FULL);
  assert.deepEqual(fromQuery(toQuery(INITIAL)), { ...INITIAL });
});

test('what is as at the start is not in the address', () => {
  assert.equal(toQuery(INITIAL), '');
  assert.equal(toQuery({ ...INITIAL, threads: [2, 5] }), '?threads=2,5');
});

test('nonsense in the address is ignored', () => {
  const state = fromQuery('?threads=a,-1,2&range=9-3&range=x&transform=drop&transform=merge-function:1;2&tab=none&color=red&sort=up&function=1e9&state=');
  assert.deepEqual(state, { ...INITIAL, threads: [2] });
});

test('a question has the last range and all filters in order', () => {
  const params = selectionParams(FULL);
  assert.equal(params.get('range'), '10-20');
  assert.equal(params.get('state'), 'both');
  assert.deepEqual(params.getAll('transform'), FULL.transforms);
  assert.deepEqual([params.get('own'), params.get('no_inline'), params.has('hidden')], ['1', '1', false]);
  assert.deepEqual([params.get('focus'), params.get('hide')], ['/^a::b$/', 'x&y=z']);
  assert.equal(selectionParams(FULL, { threads: false, filters: false, range: false }).toString(), 'state=both&event=page-faults');
});

test('the last seconds are in the address, and a range is in their place', () => {
  const state = fromQuery('?last=10');
  assert.deepEqual(state, { ...INITIAL, last: 10 });
  assert.equal(toQuery(state), '?last=10');
  assert.equal(selectionParams(state).get('last'), '10');
  assert.equal(fromQuery('?last=10&range=1-2').last, null);
  assert.equal(fromQuery('?last=0').last, null);
});

test('typing is not a step of the history, zooming is', () => {
  assert.equal(isStep({ ...INITIAL, search: 'a' }, INITIAL), false);
  assert.equal(isStep({ ...INITIAL, fn: 3 }, INITIAL), false);
  assert.equal(isStep({ ...INITIAL, tab: 'functions', fn: 3 }, { ...INITIAL, tab: 'functions' }), true);
  assert.equal(isStep({ ...INITIAL, transforms: ['focus-function:1'] }, INITIAL), true);
});
