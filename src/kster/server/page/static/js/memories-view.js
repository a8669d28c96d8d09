// All memories: sizes, fits, and making a new one.

import { post } from "./api.js";
import { chooseMemory } from "./choices.js";
import { button, element } from "./dom.js";
import { bytes, count, counted, figure } from "./format.js";
import { loadMemories } from "./memories.js";
import { attempt, notify } from "./notices.js";
import { mayWrite, memoriesInUse, state } from "./state.js";

export async function memoriesView() {
  await loadMemories();
  return {
    title: "Memories",
    body: [
      state.memories.length
        ? element("ul", { class: "memory-list" }, state.memories.map(summary))
        : element(
            "p",
            { class: "soft" },
            "There is no memory yet. Make one, then teach it or import a file into it.",
          ),
      mayWrite()
        ? newMemoryForm()
        : element("p", { class: "soft" }, "This key may only read: it cannot make a memory."),
    ],
  };
}

function summary(memory) {
  return element(
    "li",
    { class: "panel" },
    element(
      "div",
      { class: "row" },
      element("a", { class: "memory-link", href: `#/memory/${memory.id}` }, memory.name),
      element("span", { class: "gap" }),
      memoriesInUse().includes(memory)
        ? element("span", { class: "badge fitted" }, "in use")
        : button("Translate with it", () => use(memory), "quiet small"),
      memory.shared && element("span", { class: "badge" }, "for everybody"),
      element("span", { class: "badge" }, memory.automatic ? "automatic" : "on request"),
    ),
    memory.description && element("p", { class: "soft" }, memory.description),
    memory.pairs.length ? pairsTable(memory) : element("p", { class: "soft" }, "Empty"),
  );
}

function use(memory) {
  chooseMemory(String(memory.id));
  location.hash = "#/"; // back to the translation
}

export function pairsTable(memory) {
  const head = (text, kind) => element("th", { scope: "col", class: kind }, text);
  return element(
    "table",
    { class: "facts-table sizes" },
    element(
      "thead",
      {},
      element(
        "tr",
        {},
        head("Pair"),
        head("Examples", "number"),
        head("Entries", "number extra"),
        head("On disk", "number extra"),
        head("Fit"),
      ),
    ),
    element(
      "tbody",
      {},
      memory.pairs.map((part) =>
        element(
          "tr",
          {},
          element("td", {}, part.pair.replace("-", " → ")),
          element("td", { class: "number" }, count(part.segments)),
          element("td", { class: "number extra" }, count(part.entries), keysLeft(part)),
          element("td", { class: "number extra" }, bytes(part.bytes_on_disk)),
          element("td", {}, fitBadge(part)),
        ),
      ),
    ),
  );
}

/** How much is left to be learned of what was imported; translations use it all the same. */
function keysLeft(part) {
  const done = part.segments - part.without_keys;
  return (
    part.without_keys > 0 &&
    element("span", { class: "soft tiny" }, ` of ${count(done)} of ${counted(part.segments, "example")}`)
  );
}

export function fitBadge(part) {
  if (part.fitted) {
    const dev = part.fit?.dev;
    return element(
      "span",
      { class: "row" },
      element("span", { class: "badge fitted" }, "fitted"),
      dev && element("span", { class: "soft tiny" }, `loss ${figure(dev.base)} → ${figure(dev.kster)}`),
    );
  }
  return element("span", { class: "badge" }, part.tuned ? "tuned kNN-MT" : "not fitted");
}

function newMemoryForm() {
  const name = element("input", {
    type: "text",
    id: "new-memory",
    maxlength: "200",
    required: true,
    autocomplete: "off",
  });
  const create = async (event) => {
    event.preventDefault();
    await attempt(async () => {
      const memory = await post("/v1/memories", { name: name.value });
      await loadMemories();
      notify(`${memory.name} is ready for examples.`);
      location.hash = `#/memory/${memory.id}`;
    });
  };
  return element(
    "form",
    { class: "panel", submit: create },
    element("h3", {}, "A new memory"),
    element(
      "div",
      { class: "row end" },
      element("div", { class: "field" }, element("label", { for: "new-memory" }, "Name"), name),
      element("button", { class: "button strong" }, "Create"),
    ),
  );
}

export const sizeInWords = (memory) => counted(memory.segments, "example");
