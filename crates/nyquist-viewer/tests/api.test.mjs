// Errors of the server: only its code says that the token is not valid, never the words of a message.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { errorOf } from '../assets/api.js';

const kindOf = (body, status) => errorOf(typeof body === 'string' ? body : JSON.stringify(body), status).kind;

test('the code of an error says that the link has expired', () => {
  assert.equal(kindOf({ error: 'not found', code: 'not-found' }, 404), 'expired');
  assert.equal(kindOf({ error: 'no other profile is shown here' }, 404), 'refused');
  assert.equal(kindOf({ error: 'there is no question x' }, 404), 'refused');
});

test('what is no error of this server is refused with its status', () => {
  for (const text of ['', 'null', '7', '<html>', '{"error": 3}']) {
    assert.equal(errorOf(text, 502).message, 'status 502');
    assert.equal(kindOf(text, 502), 'refused');
  }
});
