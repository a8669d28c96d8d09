// The card about one word: when it opens and closes, and where. What it says is in inspector-card.js.

import { byId } from "./dom.js";
import { cardContent, decisivePiece } from "./inspector-card.js";
import { wordOf } from "./words.js";

const card = byId("inspector");
const SHOWN_AFTER = 120; // milliseconds of pointing
const HIDDEN_AFTER = 280; // time enough to move from the word to the card
const ENOUGH = 280; // pixels of height that are worth opening downwards for
const HIGHEST = 560;

let anchor = null; // the word that is shown
let pinned = false; // chosen with a click or Enter: stays when the pointer leaves
let timer;

export function setUpInspector(place) {
  place.addEventListener("pointerover", (event) => {
    const word = event.target.closest(".word");
    if (event.pointerType !== "mouse" || !word || pinned) return;
    later(() => open(word), SHOWN_AFTER);
  });
  place.addEventListener("pointerout", (event) => event.pointerType === "mouse" && hideLater());
  card.addEventListener("pointerenter", () => clearTimeout(timer));
  card.addEventListener("pointerleave", (event) => event.pointerType === "mouse" && hideLater());

  place.addEventListener("click", (event) => {
    const word = event.target.closest(".word");
    if (word) open(word, true);
  });
  place.addEventListener("focusin", (event) => {
    if (event.target.matches(".word:focus-visible")) open(event.target);
  });
  place.addEventListener("keydown", (event) => {
    if ((event.key === "Enter" || event.key === " ") && event.target.matches(".word")) {
      event.preventDefault();
      open(event.target, true);
      (card.querySelector("a.example") ?? card.querySelector(".close")).focus();
    }
  });

  card.addEventListener("keydown", stayInside);
  document.addEventListener("keydown", (event) => event.key === "Escape" && !card.hidden && closeAndReturn());
  document.addEventListener("pointerdown", (event) => !inside(event.target) && closeInspector());
  document.addEventListener("focusin", (event) => !inside(event.target) && closeInspector());
  const follow = () => anchor && beside(anchor);
  addEventListener("resize", follow); // phones send it, too, when scrolling takes the browser's bar away
  addEventListener("scroll", follow, { passive: true });
}

export function closeInspector() {
  clearTimeout(timer);
  anchor?.setAttribute("aria-expanded", "false");
  card.hidden = true;
  anchor = null;
  pinned = false;
}

/** The word whose card holds this element. */
export const wordBehind = (part) => (card.contains(part) ? anchor : null);

function open(word, pin = false) {
  clearTimeout(timer);
  pinned = pin || (pinned && anchor === word);
  if (anchor === word && !card.hidden) return;
  anchor?.setAttribute("aria-expanded", "false");
  anchor = word;
  word.setAttribute("aria-expanded", "true");
  card.hidden = false;
  card.scrollTop = 0;
  showPiece(decisivePiece(wordOf.get(word)));
  uncover(word);
}

function showPiece(at) {
  card.replaceChildren(...cardContent(wordOf.get(anchor), at, choosePiece, closeAndReturn));
  beside(anchor);
}

function choosePiece(at) {
  showPiece(at);
  card.querySelectorAll(".pieces button")[at].focus();
}

const later = (act, wait) => {
  clearTimeout(timer);
  timer = setTimeout(act, wait);
};
const hideLater = () =>
  later(() => !pinned && !card.contains(document.activeElement) && closeInspector(), HIDDEN_AFTER);
const inside = (target) => card.contains(target) || Boolean(target.closest?.(".word"));

function closeAndReturn() {
  const word = anchor;
  closeInspector();
  word?.focus();
  closeInspector(); // coming back to the word does not open it again
}

/** Tab goes through the card and then back to its word. */
function stayInside(event) {
  if (event.key !== "Tab") return;
  const stops = [...card.querySelectorAll("a, button")];
  const edge = event.shiftKey ? stops[0] : stops.at(-1);
  if (document.activeElement === edge) {
    event.preventDefault();
    closeAndReturn();
  }
}

/** Below the word, or above where there is more room. Small screens have it at the bottom (inspector.css). */
function beside(word) {
  const [line] = word.getClientRects();
  if (!line) return;
  const gap = 8;
  const below = innerHeight - line.bottom - 2 * gap;
  const above = line.top - 2 * gap;
  const fitsBelow = below >= Math.min(card.scrollHeight, ENOUGH) || below >= above;
  const height = Math.min(card.scrollHeight + 2, fitsBelow ? below : above, HIGHEST);
  const left = Math.min(Math.max(gap, line.left - 20), innerWidth - card.offsetWidth - gap);
  card.style.setProperty("left", `${left}px`);
  card.style.setProperty("top", `${fitsBelow ? line.bottom + gap : line.top - gap - height}px`);
  card.style.setProperty("max-height", `${height}px`);
}

/** Scrolls a word out from under the sheet of a small screen. */
function uncover(word) {
  const hidden = word.getBoundingClientRect().bottom + 16 - card.getBoundingClientRect().top;
  const isSheet = card.offsetWidth === innerWidth;
  if (isSheet && hidden > 0) scrollBy({ top: hidden });
}
