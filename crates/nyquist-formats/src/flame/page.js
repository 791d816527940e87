// Sorts the table by the column whose heading is clicked.
(function () {
  'use strict';
  const body = document.querySelector('tbody');
  const cell = (row, column) => row.cells[column === 'name' ? 4 : 5].textContent;
  for (const heading of document.querySelectorAll('th[data-sort]')) {
    heading.addEventListener('click', () => {
      const column = heading.dataset.sort;
      const isText = column === 'name' || column === 'lib';
      const rows = Array.from(body.rows);
      rows.sort((a, b) => isText
        ? cell(a, column).localeCompare(cell(b, column))
        : Number(b.dataset[column]) - Number(a.dataset[column]));
      body.append(...rows);
    });
  }
})();
