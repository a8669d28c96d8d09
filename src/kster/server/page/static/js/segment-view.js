// One example: to look at, correct or remove.

import { call, get } from "./api.js";
import { button, element } from "./dom.js";
import { day } from "./format.js";
import { agreed, questionPlace } from "./language.js";
import { examplesChanged } from "./memories.js";
import { attempt, notify } from "./notices.js";
import { removeSegment } from "./segments-panel.js";
import { memoryById, pairInfo } from "./state.js";

export async function segmentView(id, pair, number) {
  const segment = await get(`/v1/memories/${id}/segments/${number}?pair=${encodeURIComponent(pair)}`);
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
      const saved = await call(
        "PUT",
        `/v1/memories/${id}/segments/${number}?pair=${encodeURIComponent(pair)}`,
        edited,
      );
      await examplesChanged();
      notify("Saved. The next translation knows it.");
      location.replace(`#/memory/${id}/${pair}/${saved.id}`);
    });
  };
  const remove = () =>
    removeSegment(memory, pair, segment, () => {
      location.hash = `#/memory/${id}`;
    });

  const facts = [
    `Example ${segment.id}`,
    `added ${day(segment.created)}`,
    segment.origin && `from ${segment.origin}`,
    segment.unit && `unit ${segment.unit}`,
  ];
  return {
    title: memory.name,
    back: `#/memory/${id}`,
    body: [
      element(
        "form",
        { class: "panel", submit: save },
        element("p", { class: "soft tiny" }, facts.filter(Boolean).join(" · ")),
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
              element("span", { class: "gap" }),
              button("Delete", remove, "grave"),
            )
          : element("p", { class: "soft" }, "This memory cannot be changed with this key."),
      ),
    ],
  };
}
