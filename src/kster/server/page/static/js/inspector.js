// The card about one word, and the hint on pointing at one. What the card says is in inspector-card.js.
//
// The card lies over the base model's sheet, or below the translation where the screen is narrow (inspector.css):
// it never covers the translation or its buttons.

import { byId, element } from "./dom.js";
import { cardContent, closeButton, decisivePiece, hintFor } from "./inspector-card.js";
import { wordOf } from "./words.js";

const card = byId("inspector");
const hint = byId("hint");
const HINT_AFTER = 250; // milliseconds of pointing

let anchor = null; // the word whose card is open
let timer;

/** explain: for a word that came without its examples, a promise of the element that shows it with them. */
export function setUpInspector(place, explain) {
  place.addEventListener("pointerover", (event) => {
    const word = event.target.closest(".word");
    if (event.pointerType !== "mouse" || !word) return;
    clearTimeout(timer);
    timer = setTimeout(() => showHint(word, "Click"), HINT_AFTER);
  });
  place.addEventListener("pointerout", hideHint);
  place.addEventListener("focusin", (event) => {
    if (event.target.matches(".word:focus-visible")) showHint(event.target, "Enter");
  });
  place.addEventListener("focusout", hideHint);
  place.addEventListener("click", (event) => {
    const word = event.target.closest(".word");
    if (word) open(word, explain);
  });
  place.addEventListener("keydown", async (event) => {
    if ((event.key === "Enter" || event.key === " ") && event.target.matches(".word")) {
      event.preventDefault();
      await open(event.target, explain);
      (card.querySelector("a.example") ?? card.querySelector(".close"))?.focus();
    }
  });

  card.addEventListener("keydown", stayInside);
  document.addEventListener("keydown", (event) => event.key === "Escape" && !card.hidden && closeAndReturn());
  // Not before a click is over: on a narrow screen closing moves what is below.
  document.addEventListener("click", (event) => !isInside(event) && closeInspector());
  document.addEventListener("focusin", (event) => {
    if (!isInside(event) && event.target.matches(":focus-visible")) closeInspector();
  });
  addEventListener("scroll", hideHint, { passive: true });
}

export function closeInspector() {
  hideHint();
  anchor?.setAttribute("aria-expanded", "false");
  card.hidden = true;
  anchor = null;
}

/** The word whose card holds this element. */
export const wordBehind = (part) => (card.contains(part) ? anchor : null);

async function open(word, explain) {
  closeInspector();
  hold(word);
  if (wordOf.get(word).tokens) showPiece(decisivePiece(wordOf.get(word)));
  else {
    showLine(word.textContent, "Looking up what taught this …");
    try {
      const explained = await explain(word);
      if (anchor !== word) return; // closed, or another was asked for
      hold(explained);
      showPiece(decisivePiece(wordOf.get(explained)));
    } catch (error) {
      if (anchor === word) showLine(word.textContent, error.message);
    }
  }
  card.scrollTop = 0;
  card.scrollIntoView({ block: "nearest" });
}

function hold(word) {
  anchor = word;
  word.setAttribute("aria-expanded", "true");
  card.hidden = false;
}

function showLine(word, line) {
  card.replaceChildren(
    element("header", {}, element("h2", {}, word), closeButton(closeAndReturn)),
    element("p", { class: "soft" }, line),
  );
}

/** detailed: whether the figures below the examples are unfolded. */
function showPiece(at, detailed = false) {
  card.replaceChildren(...cardContent(wordOf.get(anchor), at, choosePiece, closeAndReturn, detailed));
}

function choosePiece(at) {
  showPiece(at, true);
  card.querySelectorAll(".pieces button")[at].focus();
}

/** By its path: what was clicked may be gone from the card by now. */
const isInside = (event) =>
  event.composedPath().some((node) => node === card || node.classList?.contains("word"));

function closeAndReturn() {
  const word = anchor;
  closeInspector();
  word?.focus();
  hideHint();
}

/** Tab goes through the card and then back to its word. */
function stayInside(event) {
  if (event.key !== "Tab") return;
  const stops = [...card.querySelectorAll("a, button, summary")].filter((stop) => stop.checkVisibility());
  const edge = event.shiftKey ? stops[0] : stops.at(-1);
  if (document.activeElement === edge) {
    event.preventDefault();
    closeAndReturn();
  }
}

/** key: what opens the card. */
function showHint(word, key) {
  const [line] = word.getClientRects();
  if (!line || anchor === word) return;
  hint.textContent = hintFor(wordOf.get(word), key);
  hint.hidden = false;
  const left = Math.min(line.left, innerWidth - hint.offsetWidth - 8);
  hint.style.setProperty("left", `${Math.max(8, left)}px`);
  hint.style.setProperty("top", `${line.top - hint.offsetHeight - 4}px`);
}

function hideHint() {
  clearTimeout(timer);
  hint.hidden = true;
}
