// Bars of label scores, filled if they reach the threshold, and the map of labels.
import { make } from "./client.js";

const SVG = "http://www.w3.org/2000/svg";

function shape(tag, attributes) {
  const node = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, value);
  return node;
}

export function drawBars(list, scores, threshold, limit) {
  const items = scores.slice(0, limit).map(({ label, score }) => {
    const chosen = score >= threshold;
    const item = make("li", undefined, chosen ? "in" : "out");
    const picture = shape("svg", { viewBox: "0 0 100 10", preserveAspectRatio: "none", "aria-hidden": "true" });
    picture.append(
      shape("rect", { class: "fill", x: 0, y: 0, width: 100 * score, height: 10 }),
      shape("line", { class: "threshold", x1: 100 * threshold, x2: 100 * threshold, y1: 0, y2: 10, "vector-effect": "non-scaling-stroke" }),
    );
    const name = make("span", chosen ? `\u2713 ${label}` : label, chosen ? "chosen" : "");
    item.append(name, picture, make("span", score.toFixed(3), "number"));
    return item;
  });
  list.replaceChildren(...items);
  return scores.filter(({ score }) => score >= threshold).length;
}

// A map of points with names; a name that would cover another one is only shown as a tooltip.
export function drawMap(place, points) {
  const width = Math.max(300, place.clientWidth || 640), height = 420;
  const picture = shape("svg", { viewBox: `0 0 ${width} ${height}`, role: "img" });
  const title = shape("title", {});
  title.textContent = `Map of ${points.length} labels; the table below lists similar labels.`;
  picture.append(title);
  const taken = [];
  const names = []; // drawn last, so that no point covers a name
  for (const point of points) {
    const x = width / 2 + point.x * (width / 2 - 90);
    const y = height / 2 - point.y * (height / 2 - 25);
    const dot = shape("circle", { cx: x, cy: y, r: 4 });
    const hint = shape("title", {});
    hint.textContent = point.label;
    dot.append(hint);
    picture.append(dot);
    const wide = 12 + 7 * Math.min(point.label.length, 24);
    const left = x + wide > width; // no space to the right
    const box = [left ? x - wide : x, y - 10, left ? x : x + wide, y + 8];
    if (taken.some((other) => box[0] < other[2] && other[0] < box[2] && box[1] < other[3] && other[1] < box[3])) continue;
    taken.push(box);
    const name = shape("text", { x: left ? x - 7 : x + 7, y: y + 4, "text-anchor": left ? "end" : "start" });
    name.textContent = point.label.length > 24 ? `${point.label.slice(0, 23)}\u2026` : point.label;
    names.push(name);
  }
  picture.append(...names);
  place.replaceChildren(picture);
}
