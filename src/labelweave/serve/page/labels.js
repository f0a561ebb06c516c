// Labels: add one, see the map and what goes together.
import { byId, call, get, guarded, make, model } from "./client.js";
import { drawMap } from "./bars.js";
import { table } from "./table.js";

let about = null;

export async function open() {
  const name = byId("labels-model").value;
  about = await get(model(name));
  byId("add-label").hidden = !about.can_change_labels;
  byId("labels-about").textContent = about.can_change_labels
    ? `${about.labels} labels; new ones need a name only.`
    : `${about.labels} labels. They are fixed: this method needs examples of each.`;
  const list = await get(`${model(name)}/labels`);
  const rows = list.labels.map((label) => ({ cells: [label.name, label.description || ""] }));
  byId("label-list").replaceChildren(table(["label", "description"], rows));
  await Promise.all([showMap(name), showPairs(name)]);
}

async function showMap(name) {
  byId("map").replaceChildren();
  if (!about.has_label_map) {
    byId("map-said").textContent = "This method keeps no vectors of its labels.";
    return;
  }
  const { points } = await get(`${model(name)}/map`);
  byId("map-said").textContent = `${points.length} labels, near where their meanings are.`;
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
    byId("pairs-said").textContent = pairs.length ? "Share: of the rows that have one of the two, those that have both." : "No two labels share a row.";
    const rows = pairs.map((pair) => ({ cells: [pair.first, pair.second, pair.rows, pair.share] }));
    if (rows.length) byId("pairs").append(table(["label", "label", "rows", "share"], rows));
  } catch (error) {
    byId("pairs-said").textContent = error.message;
  }
}

async function add(event) {
  event.preventDefault();
  const name = byId("labels-model").value;
  const label = { name: byId("new-name").value.trim(), description: byId("new-description").value.trim() || null };
  await call(`${model(name)}/labels`, { labels: [label] });
  let said = `"${label.name}" is a label now.`;
  const text = byId("new-text").value;
  if (text.trim()) {
    const answer = await call(`${model(name)}/predict`, { inputs: [text], labels: [label.name], scores: true });
    said += ` The text scores ${answer.predictions[0].scores[0].score.toFixed(3)}.`;
  }
  byId("new-name").value = byId("new-description").value = "";
  await open();
  byId("new-said").textContent = said;
  byId("new-name").focus();
}

export function start() {
  byId("labels-model").addEventListener("change", guarded(open));
  byId("add-label").addEventListener("submit", guarded(add));
}
