// Zooming, searching and fitting to the window. Every flame graph of a page is on its own.
(function () {
  'use strict';
  const MARGIN = 10, CHARACTER = 7.2, PADDING = 6;
  // How much larger the title's characters are, and what the buttons beside it take.
  const TITLE = 17 / 12, SEARCH = 70, RESET = 90;
  const NS = 'http://www.w3.org/2000/svg';

  function start(svg) {
    const total = Number(svg.dataset.total) || 1;
    const shareOf = svg.dataset.shareOf;
    // They share a line: what is under the pointer hides the subtitle.
    const details = svg.querySelector('.details'), subtitle = svg.querySelector('.subtitle');
    const header = svg.querySelector('.header'), title = svg.querySelector('.title');
    const about = subtitle.textContent, name = title.textContent;
    const headerHeight = Number(svg.dataset.header);
    const boxes = Array.from(svg.querySelectorAll('.boxes > g'), (group) => {
      const label = group.querySelector('title').textContent;
      const end = label.lastIndexOf(' (');
      return {
        group,
        rect: group.querySelector('rect'),
        text: group.querySelector('text'),
        label,
        name: label.slice(0, end),
        start: Number(group.dataset.s),
        width: Number(group.dataset.w),
        depth: Number(group.dataset.d),
        found: false,
      };
    });
    let zoomed = null;
    let width = svg.viewBox.baseVal.width;

    function button(text, onClick) {
      const element = document.createElementNS(NS, 'text');
      element.setAttribute('class', 'button');
      element.setAttribute('y', 22);
      element.setAttribute('text-anchor', 'end');
      element.textContent = text;
      element.addEventListener('click', onClick);
      header.appendChild(element);
      return element;
    }
    const axis = header.appendChild(document.createElementNS(NS, 'g'));
    axis.setAttribute('class', 'axis');
    const searchButton = button('Search', () => { const text = ask(); if (text !== null) search(text); });
    const resetButton = button('Reset zoom', () => zoom(null));
    const result = button('', () => search(''));
    result.setAttribute('y', 22);

    function ask() {
      return window.prompt('Regular expression to search for (nothing ends the search)', '');
    }

    // A text that does not fit ends with a mark, as in the file.
    function fit(text, room) {
      const count = Math.floor((room - PADDING) / CHARACTER);
      if (count < 2) return '';
      return text.length <= count ? text : text.slice(0, count - 1) + '\u2026';
    }

    // A name that does not fit keeps its last parts, as in the file.
    function fitInto(name, room) {
      const count = Math.floor((room - PADDING) / CHARACTER);
      return count < 2 ? '' : fitName(name, count);
    }

    function layout() {
      svg.setAttribute('viewBox', `0 0 ${width} ${svg.getAttribute('height')}`);
      svg.setAttribute('width', width);
      const from = zoomed ? zoomed.start : 0;
      const span = zoomed ? zoomed.width : total;
      const scale = (width - 2 * MARGIN) / span;
      for (const box of boxes) {
        const isParent = zoomed !== null && box.depth < zoomed.depth
          && box.start <= from && box.start + box.width >= from + span;
        const left = Math.max(box.start, from), right = Math.min(box.start + box.width, from + span);
        const isOutside = right <= left || (zoomed !== null && box.depth < zoomed.depth && !isParent);
        box.group.style.display = isOutside ? 'none' : '';
        if (isOutside) continue;
        const x = MARGIN + (left - from) * scale, w = (right - left) * scale;
        box.rect.setAttribute('x', x);
        box.rect.setAttribute('width', w);
        box.text.setAttribute('x', x + 3);
        box.text.textContent = fitInto(box.name, w);
        box.group.classList.toggle('parent', isParent);
        box.group.classList.toggle('found', box.found);
      }
      subtitle.textContent = fit(about, width - 2 * MARGIN);
      if (svg.dataset.timeFrom) drawAxis(from, scale);
      const buttons = SEARCH + (zoomed ? RESET : 0);
      const beside = buttons + result.textContent.length * CHARACTER;
      title.textContent = fit(name, (width - 2 * MARGIN - beside) / TITLE);
      searchButton.setAttribute('x', width - MARGIN);
      resetButton.setAttribute('x', width - MARGIN - SEARCH);
      result.setAttribute('x', width - MARGIN - buttons);
      resetButton.style.display = zoomed ? '' : 'none';
    }

    // Times at whole steps of 1, 2 or 5, not too close to each other.
    function drawAxis(from, scale) {
      const origin = Number(svg.dataset.timeFrom);
      const least = 90 / scale, power = 10 ** Math.floor(Math.log10(least));
      const step = power * [1, 2, 5, 10].find((factor) => factor * power >= least);
      const digits = Math.max(0, 6 - Math.floor(Math.log10(step) + 1e-9));
      axis.replaceChildren();
      const end = from + (width - 2 * MARGIN) / scale;
      for (let time = Math.ceil((origin + from) / step) * step; time - origin <= end; time += step) {
        const x = MARGIN + (time - origin - from) * scale;
        const line = axis.appendChild(document.createElementNS(NS, 'path'));
        line.setAttribute('d', `M${x} ${headerHeight - 6}v6`);
        const text = axis.appendChild(document.createElementNS(NS, 'text'));
        text.setAttribute('x', x + 3);
        text.setAttribute('y', headerHeight - 4);
        text.textContent = `${(time / 1e6).toFixed(digits)} ms`;
      }
    }

    function zoom(box) {
      zoomed = box;
      layout();
    }

    // What is found within what is found counts once.
    function search(text) {
      let pattern = null;
      if (text) {
        try { pattern = new RegExp(text); } catch (error) { result.textContent = String(error.message); return; }
      }
      for (const box of boxes) box.found = pattern !== null && pattern.test(box.name);
      const found = boxes.filter((box) => box.found).map((box) => [box.start, box.start + box.width]);
      found.sort((a, b) => a[0] - b[0]);
      let sum = 0, end = -Infinity;
      for (const [from, to] of found) {
        if (to > end) { sum += to - Math.max(from, end); end = to; }
      }
      result.textContent = pattern === null ? '' : `${text}: ${(100 * sum / total).toFixed(1)}% (end the search)`;
      layout();
    }

    for (const box of boxes) {
      box.group.addEventListener('click', () => zoom(box.depth === 0 && box.width === total ? null : box));
      box.group.addEventListener('mouseenter', () => {
        const share = shareOf ? ` ${(100 * box.width / total).toFixed(2)}% ${shareOf}` : '';
        details.textContent = fit(box.label + share, width - 2 * MARGIN);
        subtitle.style.display = 'none';
      });
      box.group.addEventListener('mouseleave', () => {
        details.textContent = '';
        subtitle.style.display = '';
      });
    }
    // A file of its own fills the window; within a page the page says how wide it is.
    const isAlone = svg === document.documentElement;
    function resize() {
      const scrollbar = Number(svg.getAttribute('height')) > window.innerHeight ? 18 : 0;
      const room = isAlone ? window.innerWidth - scrollbar : svg.parentElement.clientWidth;
      if (room > 200) width = room;
      layout();
    }
    window.addEventListener('resize', resize);
    if (isAlone) {
      // The header stays in sight, and a graph that stands shows its roots first.
      const stay = () => header.setAttribute('transform', `translate(0 ${window.scrollY})`);
      window.addEventListener('scroll', stay);
      if (svg.dataset.hangs === 'false') window.scrollTo(0, Number(svg.getAttribute('height')));
      stay();
    }
    window.addEventListener('keydown', (event) => {
      if (event.key === 'Escape') { search(''); zoom(null); }
      if ((event.key === 'f' && (event.ctrlKey || event.metaKey)) || event.key === 'F3') {
        event.preventDefault();
        const text = ask();
        if (text !== null) search(text);
      }
    });
    resize();
  }

  for (const svg of document.querySelectorAll('svg.flame')) {
    if (!svg.dataset.started) {
      svg.dataset.started = 'yes';
      start(svg);
    }
  }
})();
