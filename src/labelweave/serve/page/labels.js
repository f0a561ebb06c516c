// Labels: adding one, the map, and pairs that occur together.
import { byId, call, get, guarded, make, model } from "./client.js";
import { drawMap } from "./bars.js";
import { table } from "./table.js";

let about = null;

export async function open() {
  const name = byId("labels-model").value;
  about = await get(model(name));
  byId("add-label").hidden = !about.can_change_labels;
  byId("labels-about").textContent = about.can_change_labels
    ? `${about.labels} labels; a new one needs only a name.`
    : `${about.labels} labels. They are fixed: this method needs examples of each label.`;
  const list = await get(`${model(name)}/labels`);
  const rows = list.labels.map((label) => ({ cells: [label.name, label.description || ""] }));
  byId("label-list").replaceChildren(table(["label", "description"], rows));
  await Promise.all([showMap(name), showPairs(name)]);
}

async function showMap(name) {
  byId("map").replaceChildren();
  if (!about.has_label_map) {
    byId("map-status").textContent = "This method has no label vectors.";
    return;
  }
  const { points } = await get(`${model(name)}/map`);
  byId("map-status").textContent = `${points.length} labels; similar labels are close to each other.`;
  drawMap(byId("map"), points);
  const details = make("details");
  details.append(make("summary", "Nearest labels as a table"));
  const near = (point) => point.nearest.map((one) => `${one.label} (${one.score.toFixed(2)})`).join(", ");
  details.append(table(["label", "nearest"], points.map((point) => ({ cells: [point.label, near(point)] }))));
  byId("map").append(details);
}

async function showPairs(name) {
  byId("pairs").replaceChildren();
  try {
    const { pairs } = await get(`${model(name)}/cooccurrence?limit=50`);
    byId("pairs-status").textContent = pairs.length ? "Share: rows with both labels, divided by rows with either." : "No two labels occur in the same row.";
    const rows = pairs.map((pair) => ({ cells: [pair.first, pair.second, pair.rows, pair.share] }));
    if (rows.length) byId("pairs").append(table(["label", "label", "rows", "share"], rows));
  } catch (error) {
    byId("pairs-status").textContent = error.message;
  }
}

async function add(event) {
  event.preventDefault();
  const name = byId("labels-model").value;
  const label = { name: byId("new-name").value.trim(), description: byId("new-description").value.trim() || null };
  await call(`${model(name)}/labels`, { labels: [label] });
  let status = `The label "${label.name}" was added.`;
  const text = byId("new-text").value;
  if (text.trim()) {
    const answer = await call(`${model(name)}/predict`, { inputs: [text], labels: [label.name], scores: true });
    status += ` Score of the text: ${answer.predictions[0].scores[0].score.toFixed(3)}.`;
  }
  byId("new-name").value = byId("new-description").value = "";
  await open();
  byId("new-status").textContent = status;
  byId("new-name").focus();
}

export function start() {
  byId("labels-model").addEventListener("change", guarded(open));
  byId("add-label").addEventListener("submit", guarded(add));
}
