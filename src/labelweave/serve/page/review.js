// Likely missing labels, one at a time; the service stores the verdicts.
import { byId, call, get, getBlob, guarded, make } from "./client.js";

const PAGE = 50;
let queue = null;
let total = 0;
let place = 0;
let entries = new Map();

const path = () => `/v1/reviews/${encodeURIComponent(queue)}`;

async function fetchAround(number) {
  const offset = Math.floor(number / PAGE) * PAGE;
  const page = await get(`${path()}/entries?offset=${offset}&limit=${PAGE}`);
  total = page.total;
  for (const entry of page.entries) entries.set(entry.number, entry);
}

async function show(number) {
  place = Math.max(0, Math.min(number, total - 1));
  if (!entries.has(place)) await fetchAround(place);
  const entry = entries.get(place);
  const card = byId("review-entry");
  if (!entry) {
    card.replaceChildren(make("p", "The list is empty."));
    return;
  }
  const known = entry.known_labels.length ? `Known labels: ${entry.known_labels.join(", ")}` : "No known label";
  const facts = [`Entry ${place + 1} of ${total}`, `row ${entry.id || entry.row}`, `score ${entry.score.toFixed(3)}`];
  if (entry.annotated !== null) facts.push(`annotated share of similar entries: ${(100 * entry.annotated).toFixed(2)} %`);
  card.replaceChildren(
    make("p", facts.join(", "), "soft"),
    make("h2", `Does it have the label "${entry.label}"?`),
    make("p", entry.text || "The row has no text to show.", "text"),
    make("p", known, "soft"),
  );
  for (const button of document.querySelectorAll("#review-actions [data-verdict]")) {
    button.setAttribute("aria-pressed", String(button.dataset.verdict === entry.verdict));
  }
}

function showProgress(progress) {
  byId("review-bar").max = Math.max(progress.entries, 1);
  byId("review-bar").value = progress.reviewed;
  byId("review-progress").textContent =
    `${progress.reviewed} of ${progress.entries} reviewed: ${progress.yes} yes, ${progress.no} no, ${progress.unsure} unsure`;
}

async function setVerdict(verdict) {
  const entry = entries.get(place);
  if (!entry) return;
  const chosen = entry.verdict === verdict ? null : verdict; // the same verdict again withdraws it
  showProgress(await call(`${path()}/verdicts`, { entry: entry.number, verdict: chosen }, "PUT"));
  entry.verdict = chosen;
  await show(chosen === null ? place : place + 1);
}

async function choose() {
  queue = byId("review-queue").value;
  entries = new Map();
  const { queues } = await get("/v1/reviews");
  showProgress(queues.find(({ name }) => name === queue));
  const open = await get(`${path()}/entries?state=open&limit=1`);
  await fetchAround(0);
  await show(open.entries.length ? open.entries[0].number : 0);
}

export async function open() {
  const { queues } = await get("/v1/reviews");
  byId("review-queue").replaceChildren(...queues.map(({ name }) => new Option(name, name)));
  for (const id of ["review-actions", "review-export", "review-bar"]) byId(id).hidden = !queues.length;
  if (queues.length) return choose();
  byId("review-entry").replaceChildren(make("p", "There is no list to review: start the service with --review FILE, where FILE is a list from labelweave audit."));
}

async function save(format) {
  const link = make("a");
  link.href = URL.createObjectURL(await getBlob(`${path()}/verdicts?format=${format}`));
  link.download = `${queue}-verdicts.${format}`;
  link.click();
  URL.revokeObjectURL(link.href);
}

const KEYS = { y: () => setVerdict("yes"), n: () => setVerdict("no"), u: () => setVerdict("unsure"), j: () => show(place + 1), k: () => show(place - 1) };

export function start() {
  byId("review-queue").addEventListener("change", guarded(choose));
  byId("review-actions").addEventListener("click", guarded((event) => {
    const button = event.target.closest("button");
    if (button?.dataset.verdict) return setVerdict(button.dataset.verdict);
    if (button?.id === "review-next") return show(place + 1);
    if (button?.id === "review-back") return show(place - 1);
  }));
  byId("export-csv").addEventListener("click", guarded(() => save("csv")));
  byId("export-jsonl").addEventListener("click", guarded(() => save("jsonl")));
  document.addEventListener("keydown", guarded((event) => {
    const typing = event.target.closest("input, textarea, select") || event.ctrlKey || event.metaKey || event.altKey;
    if (byId("review").hidden || typing || !queue || !(event.key in KEYS)) return;
    event.preventDefault();
    return KEYS[event.key]();
  }));
}
