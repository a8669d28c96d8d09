// The list of keyboard shortcuts, and the one that belongs to no other part of the page.

import { byId } from "./dom.js";

export function setUpShortcuts() {
  const list = byId("shortcuts");
  byId("open-shortcuts").addEventListener("click", () => list.showModal());
  byId("source-text").addEventListener("keydown", (event) => {
    if (event.key !== "Enter" || !(event.ctrlKey || event.metaKey)) return;
    event.preventDefault();
    const edit = byId("edit");
    if (edit.checkVisibility()) edit.click();
  });
}
