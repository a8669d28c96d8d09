// Short messages: at the foot of the page, in its banner, and for screen readers alone.

import { button, byId, element } from "./dom.js";

const LASTING = 7000; // milliseconds

/** action: [label, what to do] of a button in the notice, such as undoing. */
export function notify(text, action) {
  const notice = element("div", { class: "notice" }, element("span", {}, text));
  if (action) {
    const [label, act] = action;
    notice.append(
      button(label, () => {
        notice.remove();
        act();
      }),
    );
  }
  byId("notices").replaceChildren(notice);
  // While a drawer is open, nothing outside of it can be used.
  const place = document.querySelector("dialog[open]") ?? document.body;
  if (byId("notices").parentElement !== place) place.append(byId("notices"));
  setTimeout(() => notice.remove(), LASTING);
}

/** Does something; what goes wrong is told rather than thrown. */
export async function attempt(act) {
  try {
    await act();
  } catch (error) {
    notify(error.message);
  }
}

/** Something that stays until it is over. Nothing hides it. */
export function showBanner(title, text, ...buttons) {
  const banner = byId("banner");
  banner.hidden = false;
  banner.replaceChildren(element("strong", {}, title), element("span", {}, text), ...buttons);
}

export function hideBanner() {
  byId("banner").hidden = true;
  byId("banner").replaceChildren();
}

export const speak = (text) => {
  byId("spoken").textContent = text;
};
