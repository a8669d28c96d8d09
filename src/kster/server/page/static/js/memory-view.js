// One memory: its sizes, adding to it, fitting it, its examples.

import { call, get, keyHeaders } from "./api.js";
import { button, element, setOptions } from "./dom.js";
import { day } from "./format.js";
import { fitPanel } from "./fit-panel.js";
import { importPanel } from "./import-panel.js";
import { examplesChanged, loadMemories } from "./memories.js";
import { pairsTable, sizeInWords } from "./memories-view.js";
import { attempt, notify } from "./notices.js";
import { segmentsPanel } from "./segments-panel.js";
import { pairInfo, pairName, partOf, state } from "./state.js";

export async function memoryView(id) {
  const [memory, jobs] = await Promise.all([get(`/v1/memories/${id}`), get(`/v1/memories/${id}/jobs`)]);
  const place = element("div", { class: "stack" });
  const pairs = memory.shared
    ? memory.pairs.map((part) => part.pair)
    : state.status.pairs.map((each) => each.pair);
  const first = partOf(memory, pairName()) || !memory.pairs.length ? pairName() : memory.pairs[0].pair;

  const show = (pair) => {
    const segments = segmentsPanel(memory, pair, refreshFacts);
    const imported = importPanel(memory, pair, jobs, async () => {
      await examplesChanged();
      segments.reload();
      await refreshFacts();
    });
    const fit = fitPanel(memory, pair, jobs, refreshFacts);
    place.replaceChildren(...(memory.writable ? [imported, fit] : [fit]), segments.panel);
  };

  const facts = element("section", { class: "panel", "aria-label": "Sizes" });
  const refreshFacts = async () => showFacts(facts, await get(`/v1/memories/${id}`));
  showFacts(facts, memory);
  show(first);
  return {
    title: memory.name,
    back: "#/memories",
    body: [facts, pairs.length > 1 && pairChoice(pairs, first, show), place, settings(memory)],
  };
}

function showFacts(place, memory) {
  place.replaceChildren(
    element(
      "p",
      { class: "row" },
      sizeInWords(memory),
      element("span", { class: "soft" }, `since ${day(memory.created)}`),
      memory.shared && element("span", { class: "badge" }, "for everybody"),
    ),
    ...(memory.description ? [element("p", {}, memory.description)] : []),
    ...(memory.pairs.length ? [pairsTable(memory)] : []),
  );
}

function pairChoice(pairs, chosen, show) {
  const select = element("select", { id: "memory-pair", change: () => show(select.value) });
  setOptions(
    select,
    pairs.map((name) => [name, `${pairInfo(name).source_name} → ${pairInfo(name).target_name}`]),
    chosen,
  );
  return element(
    "div",
    { class: "row" },
    element("div", { class: "field" }, element("label", { for: "memory-pair" }, "Languages"), select),
  );
}

// Name, use, export, deletion ------------------------------------------------------------------------

function settings(memory) {
  const change = async (edit, said) => {
    await attempt(async () => {
      await call("PATCH", `/v1/memories/${memory.id}`, edit);
      await examplesChanged();
      notify(said);
    });
  };
  const name = element("input", {
    type: "text",
    id: "memory-name",
    value: memory.name,
    maxlength: "200",
    required: true,
  });
  const rename = async (event) => {
    event.preventDefault();
    await change({ name: name.value }, `The memory is now called ${name.value}.`);
    dispatchEvent(new HashChangeEvent("hashchange")); // the drawer is shown anew
  };
  const automatic = element("input", {
    type: "checkbox",
    checked: memory.automatic,
    disabled: !memory.writable,
    change: () =>
      change(
        { automatic: automatic.checked },
        automatic.checked ? "Used automatically." : "Used on request only.",
      ),
  });
  return element(
    "details",
    { class: "panel" },
    element("summary", {}, "Name, use, export, deletion"),
    element(
      "div",
      { class: "stack" },
      memory.writable &&
        element(
          "form",
          { class: "row end", submit: rename },
          element("div", { class: "field" }, element("label", { for: "memory-name" }, "Name"), name),
          element("button", { class: "button" }, "Rename"),
        ),
      element("label", { class: "check" }, automatic, "Serves translations that name no memory"),
      element(
        "div",
        { class: "row" },
        memory.pairs.map((part) =>
          button(`Export ${part.pair} as TMX`, () => download(memory, part.pair), "small"),
        ),
      ),
      memory.writable && !memory.shared && deletion(memory),
    ),
  );
}

/** Fetched rather than linked to, so that the key travels in a header. */
async function download(memory, pair) {
  await attempt(async () => {
    const answer = await fetch(`/v1/memories/${memory.id}/export?pair=${pair}`, { headers: keyHeaders() });
    if (!answer.ok) throw new Error((await answer.json()).error);
    const address = URL.createObjectURL(await answer.blob());
    element("a", { href: address, download: `${memory.name}-${pair}.tmx` }).click();
    setTimeout(() => URL.revokeObjectURL(address), 60_000);
  });
}

function deletion(memory) {
  const place = element("div", { class: "row" });
  const ask = () => {
    place.replaceChildren(
      element("span", {}, `Delete ${memory.name} with ${sizeInWords(memory)} for good?`),
      button("Delete", remove, "grave"),
      button("Keep it", offer, "quiet"),
    );
    place.querySelector("button").focus();
  };
  const offer = () => place.replaceChildren(button("Delete this memory", ask, "grave"));
  const remove = async () => {
    await attempt(async () => {
      await call("DELETE", `/v1/memories/${memory.id}`);
      await loadMemories();
      await examplesChanged();
      notify(`${memory.name} was deleted.`);
      location.hash = "#/memories";
    });
  };
  offer();
  return place;
}
