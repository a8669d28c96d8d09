// Sentences to try, from the memory that is chosen: shown while the text is empty.

import { get } from "./api.js";
import { byId, button, element } from "./dom.js";
import { AUTOMATIC, NONE, on, pairName, partOf, state } from "./state.js";
import { setText } from "./translate.js";

const HOW_MANY = 3;
const LONGEST = 60; // characters
let asked = 0;

export function setUpSamples() {
  for (const event of ["ready", "chosen", "memories"]) on(event, showSamples);
}

async function showSamples() {
  asked += 1;
  const serial = asked;
  const place = byId("samples");
  const memory = state.memories.find(
    (each) =>
      partOf(each, pairName()) && (state.memory === AUTOMATIC ? each.automatic : each.id === state.memory),
  );
  const total = memory ? partOf(memory, pairName()).segments : 0;
  if (state.memory === NONE || !total) {
    place.replaceChildren();
    return;
  }
  // From the middle: a memory's first segments are often headings.
  const query = `pair=${pairName()}&limit=40&offset=${Math.floor(total / 8)}`;
  const { segments } = await get(`/v1/memories/${memory.id}/segments?${query}`).catch(() => ({
    segments: [],
  }));
  if (serial !== asked) return;
  const short = segments
    .map((segment) => segment.source)
    .filter((text) => text.length <= LONGEST && text.includes(" "))
    .slice(0, HOW_MANY);
  place.replaceChildren(
    short.length ? element("span", { class: "tiny soft" }, "From the memory:") : "",
    ...short.map((text) => button(text, () => setText(text), "quiet small")),
  );
}
