// Why a profile has no samples, as far as the recording says. It is the same for the whole page.

import { clean } from './format.js';

let why = '';

/** @param {import('./api.js').Info} info */
export function setEmptiness({ extra }) {
  why = extra.find(({ label }) => label === 'Nothing was sampled')?.value ?? '';
}

/** The sentence about a profile without samples. */
export const noSamples = () => (why === '' ? 'This profile has no samples.' : `Nothing was sampled: ${clean(why, 500)}.`);
