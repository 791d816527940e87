// The colours of a language in source: which part of a line is a comment, a keyword or a string. Pure.

import { tokenizeWith } from '../../../third_party/speed-highlight/tokenize.js';
import { default as c } from '../../../third_party/speed-highlight/languages/c.js';
import { default as go } from '../../../third_party/speed-highlight/languages/go.js';
import { default as java } from '../../../third_party/speed-highlight/languages/java.js';
import { default as py } from '../../../third_party/speed-highlight/languages/py.js';
import { default as rs } from '../../../third_party/speed-highlight/languages/rs.js';
import { default as ts } from '../../../third_party/speed-highlight/languages/ts.js';

/** @typedef {import('../../../third_party/speed-highlight/tokenize.js').ShjGrammar} Grammar */
/** @typedef {[text: string, kind: string | undefined]} Part `kind` is the end of a class's name */
/**
 * @typedef {object} Coloring
 * @property {(line: number) => Part[] | undefined} partsOf the parts of a line that was reached
 * @property {(line: number, ms: number) => boolean} reach works towards a line for a time; whether it was reached
 */

/** The library's types of tokens that have a colour. @type {Partial<Record<string, string>>} */
const KINDS = { cmnt: 'comment', kwd: 'keyword', bool: 'keyword', str: 'string', num: 'number', class: 'type', type: 'type', func: 'function' };

/** The library's C has no words of C++. @type {Grammar} */
const CPP = [{ type: 'kwd', match: /\b(alignas|alignof|bool|catch|class|co_await|co_return|co_yield|concept|consteval|constexpr|constinit|decltype|delete|explicit|false|final|friend|inline|mutable|namespace|new|noexcept|nullptr|operator|override|private|protected|public|requires|static_assert|static_cast|reinterpret_cast|const_cast|dynamic_cast|template|this|thread_local|throw|true|try|typename|using|virtual)\b/g }];

/** Languages by the ends of files' names. @type {[RegExp, Grammar][]} */
const LANGUAGES = [
  [/\.rs$/, flat(rs)], [/\.(c|h|cc|cpp|cxx|hh|hpp|hxx|inl|ipp|tcc|cu)$/i, [...CPP, ...flat(c)]], [/\.go$/, flat(go)], [/\.java$/, flat(java)],
  [/\.([cm]?[jt]s|[jt]sx)$/, flat(ts)], [/\.pyi?$/, flat(py)],
];

/**
 * The rules without those for languages within a token, so that each token comes as one piece.
 * @param {Grammar} grammar
 * @returns {Grammar}
 */
function flat(grammar) {
  return grammar.flatMap((rule) => {
    if (!('sub' in rule)) return [rule];
    return rule.type ? [{ type: rule.type, match: rule.match }] : [];
  });
}

/** The characters that are looked at in one go. Expressions of the library take up to the square of it. */
const WINDOW = 4000;
/** A token that is longer ends here. */
const MAX_WINDOW = 16_000;
/** Source that takes longer for a window is not coloured further: it was made for that. */
const MAX_WINDOW_MS = 400;

/**
 * @param {string} file its name selects the language
 * @param {string[]} lines
 * @returns {Coloring | null} null if the language is not known
 */
export function createColoring(file, lines) {
  const grammar = LANGUAGES.find(([name]) => name.test(file.replace(/:[0-9a-f]*$/, '')))?.[1];
  if (!grammar) return null;
  /** The lines that are complete. @type {Part[][]} */
  const known = [];
  /** The beginning of the next line. @type {Part[]} */
  let begun = [];
  let isTooSlow = false;
  /** @param {string} text @param {string | undefined} type */
  const add = (text, type) => {
    const pieces = text.split('\n');
    pieces.forEach((piece, i) => {
      // The library takes some operators for words.
      const kind = type !== undefined && /\w|['"`/]/.test(piece) ? KINDS[type] : undefined;
      if (piece !== '') begun.push([piece, kind]);
      if (i === pieces.length - 1) return;
      known.push(begun);
      begun = [];
    });
  };
  /** @param {number} size */
  const step = (size) => {
    const column = begun.reduce((sum, [text]) => sum + text.length, 0);
    let end = known.length;
    for (let length = -column; end < lines.length && length < size; end++) length += (lines[end]?.length ?? 0) + 1;
    const text = `${lines.slice(known.length, end).join('\n')}\n`.slice(column);
    /** @type {[string, string | undefined][]} */
    const tokens = [];
    const start = performance.now();
    tokenizeWith(text, grammar, (token, type) => token !== '' && tokens.push([token, type]));
    isTooSlow = performance.now() - start > MAX_WINDOW_MS;
    // A token that reaches the end of the window may go on beyond it.
    if (end < lines.length && tokens.at(-1)?.[1] !== undefined) {
      if (tokens.length > 1) tokens.pop();
      else if (size < MAX_WINDOW && !isTooSlow) return step(size * 2);
    }
    for (const [token, type] of tokens) add(token, type);
  };
  return {
    partsOf: (line) => known[line],
    reach(line, ms) {
      const end = performance.now() + ms;
      while (known.length <= line && known.length < lines.length && !isTooSlow) {
        step(WINDOW);
        if (performance.now() > end) break;
      }
      return known.length > line || known.length >= lines.length || isTooSlow;
    },
  };
}
