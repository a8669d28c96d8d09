// The examples of a memory: searching, adding, approving, rejecting, removing.

import { get, post } from "./api.js";
import { button, debounced, element, setOptions } from "./dom.js";
import { counted } from "./format.js";
import { agreed, questionPlace } from "./language.js";
import { examplesChanged } from "./memories.js";
import { attempt, notify } from "./notices.js";
import { removeSegment, STATES, statusBadge, statusButtons } from "./segment-status.js";
import { pairInfo } from "./state.js";

const PAGE = 20;

/** {panel, reload}; changed: called when an example was added or removed. */
export function segmentsPanel(memory, pair, changed) {
  const { source, target, source_name: from, target_name: into } = pairInfo(pair);
  const list = element("ul", { class: "segment-list" });
  const total = element("p", { class: "soft tiny", role: "status" });
  const more = button("Show more", () => load(list.children.length), "small");
  const search = element("input", {
    type: "search",
    id: "segment-search",
    placeholder: "Search in both languages",
    autocomplete: "off",
  });
  search.addEventListener(
    "input",
    debounced(() => load(0), 200),
  );
  const chosenState = element("select", { id: "segment-state", change: () => load(0) });
  setOptions(chosenState, Object.entries(STATES), "live");
  let asked = 0;

  async function load(offset) {
    asked += 1;
    const serial = asked;
    const shown = { state: chosenState.value, query: search.value };
    const query = new URLSearchParams({ pair, newest: true, limit: PAGE, offset, ...shown });
    if (!search.value) query.delete("query");
    try {
      const found = await get(`/v1/memories/${memory.id}/segments?${query}`);
      if (serial !== asked) return;
      if (offset === 0) list.replaceChildren();
      list.append(...found.segments.map(line));
      total.textContent = search.value
        ? `${counted(found.total, "example")} found`
        : `${counted(found.total, "example")}, newest first`;
      more.hidden = list.children.length >= found.total;
    } catch (error) {
      total.textContent = error.message;
    }
  }

  const renew = () => {
    load(0);
    attempt(changed);
  };

  function line(segment) {
    const address = `#/memory/${memory.id}/${pair}/${segment.id}`;
    const item = element(
      "li",
      { class: "segment" },
      element(
        "span",
        { class: "source-side", lang: source },
        segment.source,
        " ",
        segment.context && element("small", { title: "Where it stands" }, segment.context),
      ),
      element("span", { class: "target-side", lang: target }, segment.target, " ", statusBadge(segment)),
      element(
        "span",
        { class: "doings" },
        element(
          "a",
          {
            class: "button quiet small",
            href: address,
            "aria-label": `${memory.writable ? "Edit" : "Show"} ${segment.source}`,
          },
          memory.writable ? "Edit" : "Show",
        ),
        memory.writable && statusButtons(memory, pair, segment, renew, "quiet small"),
        memory.writable &&
          element(
            "button",
            {
              type: "button",
              class: "button quiet small",
              "aria-label": `Delete ${segment.source}`,
              click: () => removeSegment(memory, pair, segment, renew),
            },
            "Delete",
          ),
      ),
    );
    return item;
  }

  load(0);
  const panel = element(
    "section",
    { class: "panel", "aria-label": "Examples" },
    element("h3", {}, "Examples"),
    memory.writable && addForm(memory, pair, from, into, renew),
    element(
      "div",
      { class: "row" },
      element("label", { class: "unseen", for: "segment-search" }, "Search examples"),
      element("div", { class: "field wide" }, search),
      element("label", { class: "unseen", for: "segment-state" }, "Status"),
      element("div", { class: "field" }, chosenState),
    ),
    total,
    list,
    more,
  );
  return { panel, reload: () => load(0) };
}

function addForm(memory, pair, from, into, then) {
  const source = element("textarea", { id: "add-source", rows: "2", required: true });
  const target = element("textarea", { id: "add-target", rows: "2", required: true });
  const question = questionPlace();
  const add = async (event) => {
    event.preventDefault();
    await attempt(async () => {
      if (!(await agreed(question, target.value, pairInfo(pair).target))) return;
      await post(`/v1/memories/${memory.id}/segments`, {
        source: source.value.trim(),
        target: target.value.trim(),
        pair,
      });
      event.target.reset();
      await examplesChanged();
      notify("Learned.");
      then();
    });
  };
  return element(
    "details",
    {},
    element("summary", {}, "Add an example"),
    element(
      "form",
      { class: "stack", submit: add },
      element(
        "div",
        { class: "fields" },
        element("div", {}, element("label", { for: "add-source" }, from), source),
        element("div", {}, element("label", { for: "add-target" }, into), target),
      ),
      question,
      element("div", {}, element("button", { class: "button strong" }, "Add")),
    ),
  );
}
