// The text about other names of a function's code.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { foldedText } from '../assets/widgets/folded_names.js';

test('the first names are shown, and the number of the others', () => {
  assert.equal(foldedText({ function: 1, count: 0, folded: [] }), null);
  assert.equal(foldedText({ function: 1, count: 1, folded: ['get_weight'] }), 'get_weight');
  assert.equal(foldedText({ function: 1, count: 1200, folded: ['a', 'b', 'c\u202e', 'd'] }), 'a, b, c‹U+202E› and 1,197 more');
});
