// What happened to an example and its other versions: when, who, what.

import { button, element } from "./dom.js";
import { moment } from "./format.js";
import { restoreVersion } from "./segment-status.js";

const ACTIONS = {
  added: "Added",
  approved: "Approved",
  rejected: "Rejected",
  draft: "Made a draft",
  superseded: "Replaced",
  edited: "Edited",
  removed: "Deleted",
};
const RESTORABLE = ["rejected", "superseded", "edited"];

/** events: as the server tells them, oldest first; shown newest first. then: called when one was restored. */
export function historyPanel(memory, pair, segment, events, then) {
  const last = new Map(events.map((event) => [event.segment, event])); // of each version
  const link = (id) =>
    id === segment.id
      ? "this example"
      : element("a", { href: `#/memory/${memory.id}/${pair}/${id}` }, `example ${id}`);

  const line = (event) => {
    const isOld = last.get(event.segment) === event && RESTORABLE.includes(event.action);
    const texts = event.source === segment.source ? event.target : `${event.source} → ${event.target}`;
    return element(
      "li",
      {},
      element(
        "div",
        {},
        `${ACTIONS[event.action] ?? event.action}: `,
        link(event.segment),
        event.other !== null && [event.action === "edited" ? ", now " : ", by ", link(event.other)],
        event.target !== null && element("p", { class: "wording" }, texts),
        element("p", { class: "soft tiny" }, [moment(event.time), event.author].filter(Boolean).join(" · ")),
      ),
      isOld &&
        memory.writable &&
        event.target !== null &&
        button("Restore", () => restoreVersion(memory, pair, event.segment, then), "quiet small"),
    );
  };
  return element(
    "section",
    { class: "panel", "aria-label": "History" },
    element("h3", {}, "History"),
    element("ul", { class: "segment-list history" }, [...events].reverse().map(line)),
  );
}
