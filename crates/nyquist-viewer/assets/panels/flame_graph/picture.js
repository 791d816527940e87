// The whole flame graph as a picture to save, with its title and all rows, not only the visible ones.

import { theme } from '../../canvas.js';
import { clean } from '../../format.js';
import { formatAmount, measureName } from '../../measure.js';
import { createHighlight } from '../../pattern.js';
import { parentsOf } from '../../transforms.js';
import { selectionParams } from '../../url.js';
import { ask } from '../../api.js';
import { questionOf } from './change.js';
import { paintFlame } from './draw.js';
import { layoutOf } from './layout.js';
import { contentHeight } from './view.js';

/** The width, and the height of the title, in CSS pixels; and the picture's pixels per CSS pixel. */
const WIDTH = 1280;
const TITLE = 30;
const SCALE = 2;
/** The maximum height of a picture in pixels, because browsers draw nothing on larger ones. */
const HIGHEST = 16_000;

/**
 * @param {import('../../context.js').Context} ctx
 * @returns {Promise<Blob | null>} a PNG
 */
export async function pictureOf({ store, info }) {
  const state = store.get();
  const params = selectionParams(state);
  params.set('width', String(WIDTH * SCALE));
  if (state.inverted) params.set('inverted', '1');
  /** @type {import('../../api.js').FlameGraph} */
  const answer = await ask('picture', questionOf(state, info), params);
  const layout = layoutOf(answer.boxes, answer.weight, answer.before_weight);
  const parents = parentsOf(state.transforms, state.inverted).map(({ fn }) => fn);
  const view = { icicle: state.icicle, parents: parents.length, depth: layout.rows.length, height: 0, scroll: 0 };
  view.height = contentHeight(view);
  const canvas = document.createElement('canvas');
  canvas.width = WIDTH * SCALE;
  canvas.height = Math.min(HIGHEST, (view.height + TITLE) * SCALE);
  const target = canvas.getContext('2d');
  if (!target) return null;
  drawTitle(target, canvas, `${clean(info.name || info.product, 80)}: ${formatAmount(answer.weight * answer.interval_ns)} (${measureName()})`);
  const highlight = createHighlight();
  highlight.search(state.search);
  const categories = info.categories.map(({ color }) => color);
  paintFlame({ ctx: target, width: WIDTH, height: view.height }, { layout, parents, view, color: state.color, unit: state.unit, categories, matches: highlight.matches() });
  return new Promise((resolve) => canvas.toBlob(resolve, 'image/png'));
}

/**
 * @param {CanvasRenderingContext2D} ctx
 * @param {HTMLCanvasElement} canvas
 * @param {string} title
 */
function drawTitle(ctx, canvas, title) {
  const { back, text, font } = theme();
  ctx.fillStyle = back;
  ctx.fillRect(0, 0, canvas.width, canvas.height);
  ctx.setTransform(SCALE, 0, 0, SCALE, 0, 0);
  ctx.fillStyle = text;
  ctx.font = `600 ${font}`;
  ctx.textBaseline = 'middle';
  ctx.fillText(title, 6, TITLE / 2, WIDTH - 12);
  ctx.translate(0, TITLE);
}
