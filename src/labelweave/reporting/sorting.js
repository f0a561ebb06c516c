
"use strict";
// A click on a column's name sorts the table by it; without scripts the tables stay as they are.
for (const table of document.querySelectorAll("table")) {
  const body = table.tBodies[0];
  if (!body || body.rows.length < 3) continue;
  const heads = [...table.tHead.rows[0].cells];
  heads.forEach((head, column) => {
    const isNumber = head.classList.contains("number");
    const key = (row) => {
      const text = row.cells[column].textContent;
      if (!isNumber) return text;
      const number = parseFloat(text.replace(/,/g, ""));
      return Number.isNaN(number) ? -Infinity : number;
    };
    const sort = () => {
      const down = head.ariaSort === "ascending" || (head.ariaSort === "none" && isNumber);
      const compare = (a, b) => (isNumber ? key(a) - key(b) : key(a).localeCompare(key(b)));
      const rows = [...body.rows].sort((a, b) => (down ? compare(b, a) : compare(a, b)));
      heads.forEach((other) => { other.ariaSort = "none"; });
      head.ariaSort = down ? "descending" : "ascending";
      body.append(...rows);
    };
    head.ariaSort = "none";
    head.tabIndex = 0;
    head.title = "Sort";
    head.addEventListener("click", sort);
    head.addEventListener("keydown", (event) => {
      if (event.key === "Enter" || event.key === " ") { event.preventDefault(); sort(); }
    });
  });
}
