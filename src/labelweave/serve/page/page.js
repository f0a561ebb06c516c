// Tabs, and the list of models.
import { byId, get, guarded } from "./client.js";
import * as tryPart from "./try.js";
import * as labels from "./labels.js";
import * as compare from "./compare.js";
import * as review from "./review.js";

const parts = { try: tryPart, labels, compare, review };
const tabs = [...document.querySelectorAll('[role="tab"]')];

async function select(tab) {
  for (const one of tabs) {
    const chosen = one === tab;
    one.setAttribute("aria-selected", String(chosen));
    one.tabIndex = chosen ? 0 : -1;
    byId(one.getAttribute("aria-controls")).hidden = !chosen;
  }
  await parts[tab.getAttribute("aria-controls")].open();
}

byId("tabs").addEventListener("click", guarded((event) => {
  const tab = event.target.closest('[role="tab"]');
  if (tab) return select(tab);
}));
byId("tabs").addEventListener("keydown", guarded((event) => {
  const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
  if (!step) return;
  const next = tabs[(tabs.indexOf(document.activeElement) + step + tabs.length) % tabs.length];
  next.focus();
  return select(next);
}));

async function begin() {
  const { models } = await get("/v1/models");
  for (const id of ["try-model", "labels-model", "first-model", "second-model"]) {
    byId(id).replaceChildren(...models.map(({ name }) => new Option(name, name)));
  }
  if (models.length > 1) byId("second-model").selectedIndex = 1;
  await select(tabs.find((tab) => tab.getAttribute("aria-selected") === "true"));
}

for (const part of Object.values(parts)) part.start();
byId("key").addEventListener("change", guarded(begin));
await guarded(begin)();
document.body.dataset.ready = "yes";
