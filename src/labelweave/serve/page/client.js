// Requests to the API. Responses are added to the page as text, never as markup.
export const byId = (id) => document.getElementById(id);

// The key follows the # of the address, which browsers do not send; it is stored for this tab only.
const given = new URLSearchParams(location.hash.slice(1)).get("key");
if (given) {
  sessionStorage.setItem("labelweave-key", given);
  history.replaceState(null, "", location.pathname);
}
byId("key").value = sessionStorage.getItem("labelweave-key") || "";
byId("key").addEventListener("change", () => sessionStorage.setItem("labelweave-key", byId("key").value.trim()));

function headers(type) {
  const key = byId("key").value.trim();
  return { ...(key ? { Authorization: `Bearer ${key}` } : {}), ...(type ? { "Content-Type": type } : {}) };
}

async function send(path, options) {
  let answer;
  try {
    answer = await fetch(path, options);
  } catch {
    throw new Error("The service cannot be reached.");
  }
  if (answer.ok) return answer;
  const problem = await answer.json().catch(() => ({}));
  throw new Error(problem.detail || `The service answered ${answer.status}.`);
}

export const get = async (path) => (await send(path, { headers: headers() })).json();
export const getBlob = async (path) => (await send(path, { headers: headers() })).blob();
export const call = async (path, body, method = "POST") =>
  (await send(path, { method, headers: headers("application/json"), body: JSON.stringify(body) })).json();
export const sendFile = async (path, file) =>
  (await send(path, { method: "POST", headers: headers(file.type), body: file })).json();
export const model = (name) => `/v1/models/${encodeURIComponent(name)}`;

export function notice(text) {
  byId("notice").hidden = !text;
  byId("notice").textContent = text || "";
}

// Wraps an event handler: its errors are shown at the top of the page.
export function guarded(action) {
  return async (event) => {
    notice("");
    try {
      await action(event);
    } catch (error) {
      notice(error.message);
    }
  };
}

export function make(tag, text, className) {
  const node = document.createElement(tag);
  if (text !== undefined) node.textContent = text;
  if (className) node.className = className;
  return node;
}

// The input for a model: the text itself, or the record or numbers in it.
export function asInput(about, text) {
  if (about.input === "texts") {
    if (!text.trim()) throw new Error("Type a text first.");
    return text;
  }
  if (about.input === "records") {
    try {
      return JSON.parse(text);
    } catch {
      throw new Error("This model predicts from records: type a JSON object of column names and values.");
    }
  }
  const parts = text.split(/[\s,;]+/).filter(Boolean);
  const numbers = parts.map(Number);
  const wrong = numbers.findIndex((value) => !Number.isFinite(value));
  if (wrong >= 0) throw new Error(`"${parts[wrong]}" is not a number.`);
  if (numbers.length !== about.features) {
    throw new Error(`The model expects ${about.features} numbers, but there are ${numbers.length}.`);
  }
  return numbers;
}
