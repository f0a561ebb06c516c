// Predictions for a text, numbers, a record, a row of a CSV file or an image.
import { asInput, byId, call, get, guarded, make, model, sendFile } from "./client.js";
import { drawBars } from "./bars.js";
import { drawForm, fillForm, readForm } from "./record.js";
import { readCsv, table } from "./table.js";

const MAX_ROWS = 200;
const FIRST_BARS = 20;
const MAX_BARS = 1000;
let about = null;
let scores = [];
let image = null;
let showAll = false; // or only the first bars

async function choose() {
  const name = byId("try-model").value;
  about = await get(model(name));
  byId("try-text-part").hidden = about.input !== "texts";
  byId("try-vector-part").hidden = about.input !== "vectors";
  byId("try-record-part").hidden = about.input !== "records";
  if (about.input === "records") drawForm(byId("try-record"), about.columns);
  byId("try-image-part").hidden = about.input !== "images";
  byId("try-csv-part").hidden = about.input === "images";
  byId("try-result").hidden = true;
  byId("try-explain").hidden = !about.explains_by;
  byId("try-explain").textContent = about.explains_by === "labels" ? "Why the new labels?" : "Why these labels?";
  byId("try-why").replaceChildren();
  const sizes = { vectors: `${about.features} numbers`, records: `${about.columns?.length} columns` };
  const input = sizes[about.input] ?? about.input;
  byId("try-about").textContent = `${about.method}, ${about.labels} labels, input: ${input}`;
}

const inputNow = () => about.input === "records" ? readForm(byId("try-record"), about.columns) : asInput(about, byId(about.input === "texts" ? "try-text" : "try-vector").value);

async function go() {
  const name = byId("try-model").value;
  let answer;
  if (about.input === "images") {
    if (!image) throw new Error("Choose an image first.");
    answer = await sendFile(`${model(name)}/predict/image?scores=true`, image);
  } else {
    answer = await call(`${model(name)}/predict`, { inputs: [await inputNow()], scores: true });
  }
  const prediction = answer.predictions[0];
  scores = prediction.scores.slice(0, MAX_BARS);
  showAll = false;
  const labels = prediction.labels.slice(0, FIRST_BARS).map(({ label }) => label).join(", ");
  const unusual = (answer.warnings || []).map((warning) => ` (${warning})`).join("");
  byId("try-default").textContent = `With its own threshold the model predicts: ${labels || "no label"}${unusual}`;
  // The threshold that selects the labels of the model, if there is one.
  const least = Math.min(1, ...prediction.labels.map(({ score }) => score));
  byId("try-threshold").value = prediction.labels.length ? Math.floor(100 * least) / 100 : 0.5;
  byId("try-result").hidden = false;
  byId("try-why").replaceChildren();
  draw();
}

function draw() {
  const threshold = Number(byId("try-threshold").value);
  byId("try-threshold-value").textContent = threshold.toFixed(2);
  const chosen = drawBars(byId("try-bars"), scores, threshold, showAll ? MAX_BARS : FIRST_BARS);
  byId("try-more").hidden = scores.length <= FIRST_BARS;
  byId("try-more").textContent = showAll ? `Show the ${FIRST_BARS} best only` : `Show all ${scores.length}`;
  byId("try-more").setAttribute("aria-expanded", String(showAll));
  byId("try-summary").textContent = `${chosen} of ${scores.length} labels reach the threshold.`;
}

async function explain() {
  const answer = await call(`${model(byId("try-model").value)}/explain`, { inputs: [await inputNow()], top_k: 5 });
  if (answer.by !== "labels") {
    byId("try-why").replaceChildren(...answer.explanations[0].map((one) => make("li", reasons(one, answer.by))));
    return;
  }
  const lines = answer.explanations[0].map((one) => {
    const from = one.because_of.map(({ label, score }) => `${label} (${score.toFixed(2)})`).join(", ");
    const near = one.similarity === null ? "" : `; similarity to the text ${one.similarity.toFixed(2)}`;
    return make("li", `${one.label}: ${from ? `because of ${from}` : "from its name and description"}${near}`);
  });
  byId("try-why").replaceChildren(...(lines.length ? lines : [make("li", "There is no unseen label to explain.")]));
}

// The columns or words that speak for and against a label, with the change of its probability.
function reasons({ label, probability, features }, by) {
  const side = (sign) =>
    features
      .filter(({ change }) => change * sign >= 0.0005)
      .map(({ feature, value, change }) => {
        const name = by === "words" ? feature : `${feature} = ${value ?? "blank"}`;
        return `${name} (${change > 0 ? "+" : "−"}${Math.abs(change).toFixed(3)})`;
      })
      .join(", ");
  return `${label}, ${probability.toFixed(2)}: for ${side(1) || "nothing"}; against ${side(-1) || "nothing"}`;
}

async function showCsv() {
  const file = byId("try-csv").files[0];
  if (!file) return;
  const [header, ...rows] = readCsv(await file.text(), MAX_ROWS + 1);
  if (!header) throw new Error("The file is empty.");
  const lines = rows.map((row, i) => {
    const pick = make("button", `Row ${i + 1}`);
    pick.type = "button";
    pick.addEventListener("click", guarded(() => { fill(header, row); return go(); }));
    return { cells: [pick, row.join(", ").slice(0, 160)] };
  });
  byId("try-rows").replaceChildren(table(["", "content"], lines));
}

function fill(header, row) {
  if (about.input === "texts") {
    const named = header.findIndex((name) => /^(text|title|body|content)$/i.test(name.trim()));
    const longest = row.reduce((best, value, j) => (value.length > row[best].length ? j : best), 0);
    byId("try-text").value = row[named >= 0 ? named : longest];
    return;
  }
  if (about.input === "records") return fillForm(byId("try-record"), about.columns, header, row);
  const names = about.feature_names;
  const positions = names && names.map((name) => header.indexOf(name));
  const values = positions && positions.every((j) => j >= 0) ? positions.map((j) => row[j]) : row.slice(0, about.features);
  byId("try-vector").value = values.join(", ");
}

function setImage(file) {
  if (!file) return;
  image = file;
  const preview = byId("try-preview");
  if (preview.src) URL.revokeObjectURL(preview.src);
  preview.src = URL.createObjectURL(file);
  preview.hidden = false;
}

export function start() {
  byId("try-model").addEventListener("change", guarded(choose));
  byId("try-go").addEventListener("click", guarded(go));
  byId("try-threshold").addEventListener("input", draw);
  byId("try-more").addEventListener("click", () => { showAll = !showAll; draw(); });
  byId("try-explain").addEventListener("click", guarded(explain));
  byId("try-csv").addEventListener("change", guarded(showCsv));
  byId("try-image").addEventListener("change", () => setImage(byId("try-image").files[0]));
  const place = byId("try-image-part");
  for (const type of ["dragover", "dragleave", "drop"]) {
    place.addEventListener(type, (event) => {
      event.preventDefault();
      place.classList.toggle("drop", type === "dragover");
      if (type === "drop") setImage(event.dataTransfer.files[0]);
    });
  }
}
export const open = choose;
