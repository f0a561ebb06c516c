"use strict";
// The data are inserted as textContent, never as markup.
const audit = JSON.parse(document.getElementById("audit-data").textContent);
const PAGE = 50;
const VERDICTS = { yes: "\u2713 yes", no: "\u2717 no", unsure: "? unsure" };
const STORE = `labelweave-audit:${audit.key}`;
const byId = (id) => document.getElementById(id);
const entries = audit.entries;
entries.forEach((entry, i) => {
  entry.number = i;
  entry.haystack = [entry.label, entry.id, entry.row, entry.text, ...entry.known_labels].join("\n").toLowerCase();
});

let verdicts = {};
let shown = entries;
let current = 0; // place in `shown`

function load() {
  try {
    verdicts = JSON.parse(localStorage.getItem(STORE) || "{}");
  } catch (error) {
    warnNotStored();
  }
}

function save() {
  try {
    localStorage.setItem(STORE, JSON.stringify(verdicts));
  } catch (error) {
    warnNotStored();
  }
}

function warnNotStored() {
  byId("storage").hidden = false;
  byId("storage").textContent = "This browser does not store verdicts: export them before you close the page.";
}

function make(tag, text, className) {
  const node = document.createElement(tag);
  if (text !== undefined) node.textContent = text;
  if (className) node.className = className;
  return node;
}

function card(entry, place) {
  const verdict = verdicts[entry.number] || "";
  const node = make("li", undefined, `entry ${verdict}`);
  node.dataset.place = place;
  const line = make("div", undefined, "line");
  const name = entry.id ? `row ${entry.id}` : `row ${entry.row}`;
  line.append(
    make("span", `${entry.rank}.`, "soft"),
    make("strong", entry.label),
    make("span", `score ${entry.score.toFixed(3)}`, "soft"),
    make("span", `share of such entries annotated as positive: ${(100 * entry.annotated).toFixed(2)} %`, "soft"),
    make("span", name, "soft"),
  );
  const marks = make("span", undefined, "marks");
  for (const [id, text] of Object.entries(VERDICTS)) {
    const button = make("button", text);
    button.type = "button";
    button.dataset.verdict = id;
    button.setAttribute("aria-pressed", String(verdict === id));
    button.setAttribute("aria-label", `${id}: ${entry.label}, ${name}`);
    marks.append(button);
  }
  line.append(marks);
  node.append(line);
  if (audit.pictures[entry.row]) {
    const picture = make("img");
    picture.src = audit.pictures[entry.row];
    picture.alt = `the image of ${name}`;
    node.append(picture);
  }
  if (entry.text) node.append(make("p", entry.text, "text"));
  const known = make("div", undefined, "known");
  known.append(make("i", entry.known_labels.length ? "known labels:" : "no known label"));
  for (const label of entry.known_labels) known.append(make("span", label));
  node.append(known);
  return node;
}

function draw(scroll) {
  current = Math.max(0, Math.min(current, shown.length - 1));
  const page = Math.floor(current / PAGE);
  const first = page * PAGE;
  const cards = shown.slice(first, first + PAGE).map((entry, i) => card(entry, first + i));
  if (cards.length) cards[current - first].classList.add("current");
  byId("entries").replaceChildren(...(cards.length ? cards : [make("li", "No entry matches these filters.")]));
  byId("where").textContent = shown.length
    ? `${first + 1} to ${Math.min(first + PAGE, shown.length)} of ${shown.length.toLocaleString("en")}`
    : "";
  byId("back").disabled = page === 0;
  byId("forth").disabled = first + PAGE >= shown.length;
  if (scroll && cards.length) cards[current - first].scrollIntoView({ block: "nearest" });
  count();
}

function count() {
  const counts = { yes: 0, no: 0, unsure: 0 };
  for (const verdict of Object.values(verdicts)) counts[verdict] += 1;
  const done = counts.yes + counts.no + counts.unsure;
  byId("bar").max = Math.max(entries.length, 1);
  byId("bar").value = done;
  byId("progress").textContent =
    `${done.toLocaleString("en")} of ${entries.length.toLocaleString("en")} reviewed: ` +
    `${counts.yes} yes, ${counts.no} no, ${counts.unsure} unsure`;
  byId("to-csv").disabled = byId("to-jsonl").disabled = done === 0;
}

function filter() {
  const label = byId("by-label").value;
  const verdict = byId("by-verdict").value;
  const words = byId("search").value.toLowerCase().split(/\s+/).filter(Boolean);
  shown = entries.filter(
    (entry) =>
      (label === "" || entry.label === entries[+label].label) &&
      (verdict === "" || (verdicts[entry.number] || "open") === verdict) &&
      words.every((word) => entry.haystack.includes(word)),
  );
  current = 0;
  draw(false);
}

function mark(place, verdict) {
  const entry = shown[place];
  if (!entry) return;
  if (verdict === "" || verdicts[entry.number] === verdict) delete verdicts[entry.number];
  else verdicts[entry.number] = verdict;
  save();
  current = place;
}

function exportAs(kind) {
  const rows = entries
    .filter((entry) => verdicts[entry.number])
    .map((entry) => ({ row: entry.row, id: entry.id, label: entry.label, verdict: verdicts[entry.number], score: entry.score }));
  const quote = (value) => (/[",\r\n]/.test(value) ? `"${String(value).replace(/"/g, '""')}"` : String(value));
  const text =
    kind === "csv"
      ? ["row,id,label,verdict,score", ...rows.map((row) => Object.values(row).map(quote).join(","))].join("\n") + "\n"
      : rows.map((row) => JSON.stringify(row) + "\n").join("");
  const link = make("a");
  link.href = URL.createObjectURL(new Blob([text], { type: kind === "csv" ? "text/csv" : "application/jsonl" }));
  link.download = `verdicts.${kind}`;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 1000);
}

function option(select, value, text) {
  const node = make("option", text);
  node.value = value;
  select.append(node);
}

function fillFilters() {
  const counts = new Map();
  entries.forEach((entry) => {
    const count = counts.get(entry.label) || { first: entry.number, n: 0 };
    count.n += 1;
    counts.set(entry.label, count);
  });
  option(byId("by-label"), "", `all (${counts.size})`);
  [...counts].sort((a, b) => a[0].localeCompare(b[0])).forEach(([label, count]) => {
    option(byId("by-label"), String(count.first), `${label} (${count.n})`);
  });
  option(byId("by-verdict"), "", "all");
  option(byId("by-verdict"), "open", "not reviewed");
  for (const [id, text] of Object.entries(VERDICTS)) option(byId("by-verdict"), id, text);
}

const KEYS = { y: "yes", n: "no", u: "unsure", x: "" };
document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  const typing = /^(INPUT|SELECT|TEXTAREA)$/.test(event.target.tagName);
  if (typing && event.key === "Escape") event.target.blur();
  if (typing) return;
  const key = event.key.toLowerCase();
  if (key in KEYS) {
    const before = verdicts[(shown[current] || {}).number];
    mark(current, KEYS[key]);
    if (key !== "x" && before !== KEYS[key]) current += 1;
  } else if (key === "j" || key === "arrowdown") current += 1;
  else if (key === "k" || key === "arrowup") current -= 1;
  else if (key === "/") byId("search").focus();
  else return;
  event.preventDefault();
  draw(true);
});
byId("entries").addEventListener("click", (event) => {
  const node = event.target.closest(".entry");
  if (!node || node.dataset.place === undefined) return;
  const verdict = event.target.dataset.verdict;
  current = +node.dataset.place;
  if (verdict) mark(current, verdict);
  draw(false);
});
byId("by-label").addEventListener("change", filter);
byId("by-verdict").addEventListener("change", filter);
byId("search").addEventListener("input", filter);
byId("to-csv").addEventListener("click", () => exportAs("csv"));
byId("to-jsonl").addEventListener("click", () => exportAs("jsonl"));
byId("back").addEventListener("click", () => { current -= PAGE; draw(true); });
byId("forth").addEventListener("click", () => { current += PAGE; draw(true); });

load();
fillFilters();
draw(false);
