// The predictions of two models for one input, disagreements first.
import { asInput, byId, call, get, guarded, model } from "./client.js";
import { table } from "./table.js";

async function scoresOf(name, text) {
  const about = await get(model(name));
  const body = { inputs: [asInput(about, text)], scores: true };
  const prediction = (await call(`${model(name)}/predict`, body)).predictions[0];
  const chosen = new Set(prediction.labels.map(({ label }) => label));
  return new Map(prediction.scores.map(({ label, score }) => [label, { score, chosen: chosen.has(label) }]));
}

async function go() {
  const names = [byId("first-model").value, byId("second-model").value];
  const text = byId("compare-input").value;
  const [first, second] = await Promise.all(names.map((name) => scoresOf(name, text)));
  const labels = [...new Set([...first.keys(), ...second.keys()])];
  const rows = labels.map((label) => {
    const [a, b] = [first.get(label), second.get(label)];
    const apart = Boolean(a && b && a.chosen !== b.chosen);
    const gap = a && b ? Math.abs(a.score - b.score) : 0;
    return { label, a, b, apart, gap };
  });
  rows.sort((x, y) => Number(y.apart) - Number(x.apart) || y.gap - x.gap);
  const shown = (one) => (one ? `${one.chosen ? "\u2713 " : ""}${one.score.toFixed(3)}` : "no such label");
  const word = ({ a, b, apart }) => (apart ? "disagree" : a && b ? "agree" : "");
  byId("compare-table").replaceChildren(
    table(["label", ...names, ""], rows.slice(0, 500).map((row) => ({
      cells: [row.label, shown(row.a), shown(row.b), word(row)],
      className: row.apart ? "apart" : "",
    }))),
  );
  const both = rows.filter(({ a, b }) => a && b).length;
  const differ = rows.filter(({ apart }) => apart).length;
  byId("compare-summary").textContent = `The models disagree on ${differ} of ${both} shared labels.`;
}

export function start() {
  byId("compare-go").addEventListener("click", guarded(go));
}
export async function open() {}
