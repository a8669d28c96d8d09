// One example: to look at, correct, approve, reject or remove, and its history.

import { get } from "./api.js";
import { button, element } from "./dom.js";
import { day } from "./format.js";
import { agreed, questionPlace } from "./language.js";
import { attempt } from "./notices.js";
import { historyPanel } from "./segment-history.js";
import { editSegment, removeSegment, statusBadge, statusButtons } from "./segment-status.js";
import { memoryById, pairInfo } from "./state.js";

export async function segmentView(id, pair, number) {
  const address = `/v1/memories/${id}/segments/${number}`;
  const query = `?pair=${encodeURIComponent(pair)}`;
  const [segment, { events }] = await Promise.all([get(address + query), get(`${address}/history${query}`)]);
  const memory = memoryById(id);
  const info = pairInfo(pair);
  const source = element(
    "textarea",
    { id: "segment-source", lang: info.source, required: true, readonly: !memory.writable },
    segment.source,
  );
  const target = element(
    "textarea",
    { id: "segment-target", lang: info.target, required: true, readonly: !memory.writable },
    segment.target,
  );

  const question = questionPlace();

  const save = async (event) => {
    event.preventDefault();
    await attempt(async () => {
      const edited = { source: source.value.trim(), target: target.value.trim() };
      if (!(await agreed(question, edited.target, info.target))) return;
      await editSegment(memory, pair, segment, edited, (shown) =>
        location.replace(`#/memory/${id}/${pair}/${shown}`),
      );
    });
  };
  const remove = () =>
    removeSegment(memory, pair, segment, () => {
      location.hash = `#/memory/${id}`;
    });

  const again = () => dispatchEvent(new HashChangeEvent("hashchange")); // the drawer is shown anew
  const facts = [
    `Example ${segment.id}`,
    `added ${day(segment.created)}${segment.author ? ` by ${segment.author}` : ""}`,
    segment.origin && `from ${segment.origin}`,
    segment.unit && `unit ${segment.unit}`,
    segment.context && `context ${segment.context}`,
  ];
  return {
    title: memory.name,
    back: `#/memory/${id}`,
    body: [
      element(
        "form",
        { class: "panel", submit: save },
        element("p", { class: "soft tiny" }, facts.filter(Boolean).join(" · "), " ", statusBadge(segment)),
        element(
          "div",
          { class: "fields" },
          element("div", {}, element("label", { for: "segment-source" }, info.source_name), source),
          element("div", {}, element("label", { for: "segment-target" }, info.target_name), target),
        ),
        question,
        memory.writable
          ? element(
              "div",
              { class: "row" },
              element("button", { class: "button strong" }, "Save"),
              statusButtons(memory, pair, segment, again, ""),
              element("span", { class: "gap" }),
              button("Delete", remove, "grave"),
            )
          : element("p", { class: "soft" }, "This memory cannot be changed with this key."),
      ),
      historyPanel(memory, pair, segment, events, again),
    ],
  };
}
