// Tables, and reading CSV files.
import { make } from "./client.js";

export function table(columns, rows) {
  const element = make("table");
  const head = make("tr");
  for (const name of columns) {
    const numbers = rows.length && typeof rows[0].cells[head.children.length] === "number";
    const cell = make("th", name, numbers ? "number" : "");
    cell.scope = "col";
    head.append(cell);
  }
  const body = make("tbody");
  for (const { cells, className } of rows) {
    const line = make("tr", undefined, className);
    for (const value of cells) {
      const cell = make("td", value instanceof Node ? undefined : String(value), typeof value === "number" ? "number" : "");
      if (value instanceof Node) cell.append(value);
      line.append(cell);
    }
    body.append(line);
  }
  const top = make("thead");
  top.append(head);
  element.append(top, body);
  return element;
}

// Rows of a CSV file, quoted fields included; at most `limit` of them.
export function readCsv(text, limit) {
  const rows = [];
  let row = [], field = "", quoted = false;
  for (let i = 0; i < text.length && rows.length < limit; i++) {
    const c = text[i];
    if (quoted) {
      if (c === '"' && text[i + 1] === '"') { field += '"'; i++; }
      else if (c === '"') quoted = false;
      else field += c;
    } else if (c === '"') quoted = true;
    else if (c === ",") { row.push(field); field = ""; }
    else if (c === "\n" || c === "\r") {
      if (c === "\r" && text[i + 1] === "\n") i++;
      row.push(field);
      if (row.length > 1 || row[0]) rows.push(row);
      row = []; field = "";
    } else field += c;
  }
  if ((field || row.length) && rows.length < limit) rows.push([...row, field]);
  return rows;
}
