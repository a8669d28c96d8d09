// The card about one word: how much the memory had to say, and which examples spoke.

import { button, byId, element } from "./dom.js";
import { figure, share } from "./format.js";
import { wordOf } from "./words.js";

const card = byId("inspector");
const SHOWN_AFTER = 120; // milliseconds of pointing
const HIDDEN_AFTER = 280; // time enough to move from the word to the card
const ENOUGH = 280; // pixels of height that are worth opening downwards for
const HIGHEST = 560;
const FAINT = 0.005; // an example that weighs less is not worth a line

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
  addEventListener("resize", closeInspector);
  addEventListener("scroll", () => anchor && beside(anchor), { passive: true });
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
  show(wordOf.get(word), decisivePiece(wordOf.get(word)));
  beside(word);
  uncover(word);
}

const later = (act, wait) => {
  clearTimeout(timer);
  timer = setTimeout(act, wait);
};
const hideLater = () => later(() => !pinned && !card.contains(document.activeElement) && closeInspector(), HIDDEN_AFTER);
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

/** The first piece whose weight is about the word's: there the word was chosen. */
const decisivePiece = (word) => word.tokens.findIndex((token) => token.mixing_weight > word.mixing_weight - 0.1);

// What the card says ---------------------------------------------------------------------------------

function show(word, chosen) {
  const token = word.tokens[chosen];
  const say = element("div", { class: "say", "aria-hidden": "true" }, element("span"));
  say.firstChild.style.setProperty("--weight", token.mixing_weight);
  card.replaceChildren(
    element("header", {},
      element("h2", {}, word.text),
      element("button", { type: "button", class: "button quiet close", "aria-label": "Close", click: closeAndReturn }, "✕")),
    say,
    element("p", { class: "verdict" }, verdict(token)),
    element("dl", { class: "figures" },
      fact("Mixing weight λ", figure(token.mixing_weight)),
      fact("Bandwidth σ", figure(token.bandwidth)),
      fact("Base p", share(token.base_probability)),
      fact("Adapted p", share(token.probability))),
    word.tokens.length > 1 ? pieces(word, chosen) : "",
    element("h3", {}, token.examples.length ? "Examples it looked at" : "No examples were looked at"),
    element("ul", { class: "examples" }, token.examples.filter((e, i) => i === 0 || e.weight > FAINT).map((example) => exampleLine(example, token, word.text))));
}

function verdict(token) {
  if (!token.examples.length) return "The base model alone decided this.";
  const weight = token.mixing_weight;
  if (weight > 0.66) return "The memory decided this.";
  if (weight > 0.33) return "Memory and base model decided this together.";
  return weight > 0.05 ? "Mostly the base model decided this." : "The base model decided this; the memory had nothing fitting.";
}

const fact = (name, value) => element("div", {}, element("dt", {}, name), element("dd", {}, value));
/** The text, with the word marked where it has it, perhaps with another ending. */
function marked(text, word) {
  const shortest = word.length < 4 ? word.length : Math.max(4, Math.ceil(0.7 * word.length));
  for (let length = word.length; length >= shortest; length -= 1) {
    const at = text.toLowerCase().indexOf(word.slice(0, length).toLowerCase());
    if (at >= 0) return [text.slice(0, at), element("mark", {}, text.slice(at, at + length)), text.slice(at + length)];
  }
  return [text];
}

const plain = (token) => token.replaceAll("▁", "").replace("</s>", "(end)") || "␣";

/** A word may be made of several pieces, each decided for itself. */
function pieces(word, chosen) {
  const choose = (at) => {
    show(word, at);
    beside(anchor);
    card.querySelectorAll(".pieces button")[at].focus();
  };
  return element("div", { class: "pieces", role: "group", "aria-label": "Pieces of this word" }, word.tokens.map((token, at) =>
    element("button", { type: "button", class: "button small", "aria-pressed": String(at === chosen), click: () => choose(at) }, plain(token.token))));
}

function exampleLine(example, token, word) {
  const { memory } = example;
  const weight = element("span", { class: "weight" }, element("span", { class: "unseen" }, "Kernel weight "), share(example.weight));
  weight.style.setProperty("--weight", example.weight);
  const content = [
    weight,
    element("span", {},
      element("span", { class: "target", lang: byId("adapted").lang }, marked(example.target, word)), element("br"),
      element("span", { class: "origin-text", lang: byId("source-text").lang }, example.source), element("br"),
      element("span", { class: "facts" }, "said ", element("b", {}, `“${plain(example.token)}”`),
        example.token === token.token ? " as here" : "", ` · distance ${figure(example.distance, 1)}`, memory ? ` · ${memory.name}` : "")),
  ];
  if (!memory) return element("li", { class: "example" }, content);
  const href = `#/memory/${memory.id}/${memory.pair}/${example.segment}`;
  return element("li", {}, element("a", { class: "example", href }, content));
}
