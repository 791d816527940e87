// The progress of a running recording. It is the same for the whole page.

let running = false;
let until = 0;

/**
 * @param {boolean} isRunning
 * @param {number} untilNs the time up to which the recording is complete, in ns
 */
export function setProgress(isRunning, untilNs) {
  running = isRunning;
  until = untilNs;
}

export const isRunning = () => running;

/**
 * The last seconds of the recording so far.
 * @param {number} seconds
 * @returns {[number, number]}
 */
export function lastRange(seconds) {
  const end = Math.max(1, until);
  return [Math.max(0, end - seconds * 1e9), end];
}
