// The drawer: what it shows is in the address, so that every memory and segment can be linked to.
//
//   #/memories               all memories
//   #/terms                  the terms of the chosen languages
//   #/memory/ID              one of them
//   #/memory/ID/PAIR/SEGMENT one example of it

import { Unreachable } from "./api.js";
import { byId, element } from "./dom.js";
import { closeInspector, wordBehind } from "./inspector.js";
import { memoriesView } from "./memories-view.js";
import { memoryView } from "./memory-view.js";
import { segmentView } from "./segment-view.js";
import { on, state } from "./state.js";
import { termsView } from "./terms-view.js";

const drawer = byId("drawer");
let opener = null; // what had the focus before

const ROUTES = [
  [/^#\/memories$/, memoriesView],
  [/^#\/terms$/, termsView],
  [/^#\/memory\/(\d+)$/, memoryView],
  [/^#\/memory\/(\d+)\/([^/]+)\/(\d+)$/, segmentView],
];

export function setUpDrawer() {
  addEventListener("hashchange", follow);
  on("ready", follow);
  drawer.addEventListener("close", () => {
    if (routeOf(location.hash)) history.replaceState(null, "", "#/");
    document.body.append(byId("notices")); // which are shown inside while it is open
    byId("drawer-content").replaceChildren();
    (opener?.isConnected ? opener : byId("source-text")).focus();
  });
  drawer.addEventListener("click", (event) => {
    if (event.target === drawer) drawer.close(); // beside it
  });
}

function routeOf(hash) {
  for (const [pattern, view] of ROUTES) {
    const match = hash.match(pattern);
    if (match) return { view, parameters: match.slice(1).map(decodeURIComponent) };
  }
  return null;
}

async function follow() {
  const route = routeOf(location.hash);
  if (!route || !state.status) {
    if (!route && drawer.open) drawer.close();
    return;
  }
  if (!drawer.open) {
    const active = document.activeElement;
    opener = wordBehind(active) ?? active;
    closeInspector();
    drawer.showModal();
  }
  const address = location.hash;
  for (const body of drawer.querySelectorAll(".drawer-body")) body.inert = true; // it is about to go
  let content;
  try {
    content = await route.view(...route.parameters);
  } catch (error) {
    const title = error instanceof Unreachable ? "No answer" : "Not to be had";
    content = {
      title,
      back: "#/memories",
      body: [element("p", { class: "wrong", role: "alert" }, error.message)],
    };
  }
  if (location.hash === address && drawer.open) show(content);
}

/** back: the address of the view above. */
function show({ title, back, body }) {
  const heading = element("h2", { tabindex: "-1" }, title);
  const close = element(
    "button",
    { type: "button", class: "button quiet", "aria-label": "Close", click: () => drawer.close() },
    "✕",
  );
  byId("drawer-content").replaceChildren(
    element(
      "header",
      { class: "drawer-head" },
      back && element("a", { class: "button quiet", href: back, "aria-label": "Back" }, "‹"),
      heading,
      close,
    ),
    element("div", { class: "drawer-body" }, body),
  );
  drawer.setAttribute("aria-label", title);
  heading.focus();
}
