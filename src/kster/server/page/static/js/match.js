// The memory's best fuzzy match of the text, under its translation.

import { element } from "./dom.js";

const TAGS = { same: "span", removed: "del", added: "ins" };

/** matches: as /v1/translate names them, best first; the place is hidden where there are none. */
export function showMatch(place, [best] = []) {
  place.hidden = best === undefined;
  if (best === undefined) {
    place.replaceChildren();
    return;
  }
  const { memory, segment, percentage, changes, target } = best;
  place.replaceChildren(
    element(
      "a",
      { class: "percentage", href: `#/memory/${memory.id}/${memory.pair}/${segment}` },
      `${percentage} % match`,
    ),
    element("p", {}, ...changes.map(({ kind, text }) => element(TAGS[kind], {}, text))),
    element("p", { class: "target" }, target),
  );
}
