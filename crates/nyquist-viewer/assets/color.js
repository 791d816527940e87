// Colours of categories and libs, for both themes. A lib has the same colour in every profile.

/** Hue and saturation of the API's colour names. @type {Record<string, [number, number]>} */
const NAMED = {
  transparent: [220, 8], purple: [270, 45], green: [125, 40], orange: [24, 85], yellow: [44, 85], lightblue: [203, 75], blue: [217, 65],
  brown: [28, 38], magenta: [320, 60], red: [2, 68], lightred: [355, 70], darkgrey: [220, 6], grey: [220, 6],
};
const DARKER = new Set(['darkgrey', 'blue', 'brown', 'purple']);

/**
 * The colour of a category in a CPU graph.
 * @param {string} name
 * @param {boolean} dark
 */
export function graphColor(name, dark) {
  if (name === 'transparent') return 'transparent';
  const [hue, saturation] = NAMED[name] ?? [220, 6];
  const light = (dark ? 52 : 60) - (DARKER.has(name) ? 8 : 0);
  return `hsl(${hue} ${Math.round(saturation * (dark ? 0.72 : 0.88))}% ${light}%)`;
}

/**
 * The colour of a box with text, by category.
 * @param {string} name
 * @param {boolean} dark
 * @param {number} shade the shade of the function, 0 to 1
 */
export function categoryBox(name, dark, shade) {
  const [hue, saturation] = NAMED[name] ?? [220, 6];
  return box(hue, saturation, dark, shade);
}

/**
 * The colour of a box with text, by its group: a module or a lib.
 * @param {string | null} group
 * @param {boolean} dark
 * @param {number} shade
 */
export function groupBox(group, dark, shade) {
  if (group === null) return box(220, 6, dark, shade);
  return box((hash(group) % 24) * 15 + 8, 50, dark, shade);
}

/**
 * The colour of a thin line of a group: that of its boxes, but strong.
 * @param {string} group
 * @param {boolean} dark
 */
export const groupLine = (group, dark) => `hsl(${(hash(group) % 24) * 15 + 8} 60% ${dark ? 62 : 42}%)`;

/**
 * The colour of a box by the change of its share of the whole: red has grown, blue has shrunk. A tenth has
 * the strongest colour.
 * @param {number} change
 * @param {boolean} dark
 */
export function changeBox(change, dark) {
  const strength = Math.sqrt(Math.min(1, Math.abs(change) / 0.1));
  const light = dark ? 25 + strength * 12 : 93 - strength * 25;
  return `hsl(${change < 0 ? 215 : 8} ${Math.round(strength * (dark ? 62 : 85))}% ${light.toFixed(0)}%)`;
}

/**
 * The group of a function by its name: the crate, namespace or package at the start of its path, otherwise
 * its lib.
 * @param {string} name
 * @param {string | null} lib
 */
export function moduleOf(name, lib) {
  const start = name.slice(0, 300);
  const path = /^(?:[<&*\[(]|dyn |mut |impl )*([\w$]+)::/.exec(start);
  if (path) return path[1] ?? lib;
  const go = /^([\w.-]+(?:\/[\w.-]+)+?)\.\(?\*?[\w[\]]/.exec(start);
  if (go) return go[1] ?? lib;
  return /^([\w$]+\.[\w$]+)\.[\w$.<>]+$/.exec(start)?.[1] ?? lib;
}

/**
 * @param {number} hue
 * @param {number} saturation
 * @param {boolean} dark
 * @param {number} shade
 */
function box(hue, saturation, dark, shade) {
  const light = dark ? 27 + shade * 8 : 78 + shade * 9;
  return `hsl(${hue} ${Math.round(saturation * (dark ? 0.72 : 1))}% ${light.toFixed(0)}%)`;
}

/**
 * The brightness of a name's boxes among those of their group, 0 to 1 in five steps.
 * @param {string} name
 */
export function shadeOf(name) {
  return (hash(name.slice(-40)) % 5) / 4;
}

/** @param {string} text */
function hash(text) {
  let value = 2166136261;
  for (let i = 0; i < Math.min(text.length, 200); i++) value = Math.imul(value ^ text.charCodeAt(i), 16777619);
  value ^= value >>> 15;
  return Math.imul(value, 2246822519) >>> 8;
}

/**
 * The opacity of the heat colour of a line. A line with a tenth is already well visible.
 * @param {number} share 0 to 1
 */
export function heat(share) {
  return share <= 0 ? 0 : Math.min(0.6, 0.06 + 0.6 * Math.sqrt(share));
}
