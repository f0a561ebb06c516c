// A form with one field per column of the records that a model predicts from.
import { make } from "./client.js";

const IMAGE_TYPES = "image/png,image/jpeg,image/webp";
const fieldId = (k) => `column-${k}`;

function select(values) {
  const field = make("select");
  field.append(...["", ...values].map((value) => new Option(value, value)));
  return field;
}

function fieldOf(column, k) {
  if (column.kind === "text") {
    const field = make("textarea");
    field.rows = 2;
    return [field];
  }
  if (column.kind === "yes/no") return [select(["yes", "no"])];
  const field = make("input");
  if (column.kind === "image") {
    field.type = "file";
    field.accept = IMAGE_TYPES;
  }
  if (column.kind === "number") {
    field.type = "number";
    field.step = "any";
  }
  if (column.kind === "date" && (!column.format || column.format === "ISO8601")) field.placeholder = "2024-12-31";
  else if (column.kind === "date") field.placeholder = column.format;
  if (!column.values) return [field];
  const known = make("datalist");
  known.id = `${fieldId(k)}-values`;
  known.append(...column.values.map((value) => new Option(value, value)));
  field.setAttribute("list", known.id);
  return [field, known];
}

export function drawForm(place, columns) {
  place.replaceChildren(...columns.map((column, k) => {
    const label = make("label", `${column.name} `);
    label.append(make("span", column.may_be_blank ? column.kind : `${column.kind}, needed`, "soft"));
    const [field, ...others] = fieldOf(column, k);
    field.id = fieldId(k);
    label.htmlFor = field.id;
    const row = make("div");
    row.append(label, field, ...others);
    return row;
  }));
}

// A value as the model expects it: null for a blank, numbers as numbers.
export function asValue(column, text) {
  if (!text.trim()) return null;
  const numeric = column.kind === "number" || (column.values || []).some((value) => typeof value === "number");
  if (!numeric) return text;
  const value = Number(text);
  if (!Number.isFinite(value)) throw new Error(`${column.name}: "${text}" is not a number.`);
  return value;
}

// A chosen file as a data URL.
function asDataUrl(file) {
  return new Promise((resolve, reject) => {
    const reader = new FileReader();
    reader.addEventListener("load", () => resolve(reader.result));
    reader.addEventListener("error", () => reject(new Error(`${file.name} cannot be read.`)));
    reader.readAsDataURL(file);
  });
}

export async function readForm(place, columns) {
  const values = columns.map(async (column, k) => {
    const field = place.querySelector(`#${fieldId(k)}`);
    if (column.kind === "image") return [column.name, field.files[0] ? await asDataUrl(field.files[0]) : null];
    if (field.validity.badInput) throw new Error(`${column.name} is not a number.`);
    return [column.name, asValue(column, field.value)];
  });
  return Object.fromEntries(await Promise.all(values));
}

export function fillForm(place, columns, header, row) {
  columns.forEach((column, k) => {
    const at = column.kind === "image" ? -1 : header.indexOf(column.name); // a page cannot choose files
    place.querySelector(`#${fieldId(k)}`).value = at < 0 ? "" : row[at];
  });
}
