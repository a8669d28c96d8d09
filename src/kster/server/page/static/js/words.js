// Showing a translation word by word.

import { element } from "./dom.js";
import { percent } from "./format.js";
import { DOUBTFUL } from "./judgement.js";

/** The adapted translation: words that can be pointed at and reached with the arrow keys. */
export function showWords(place, translation) {
  fill(place, translation, (word) => {
    const span = element(
      "span",
      {
        class: `word${word.changed ? " changed" : ""}${isDoubtful(word) ? " doubtful" : ""}`,
        role: "button",
        tabindex: "-1",
        "aria-expanded": "false",
        "aria-label": `${word.text}${word.changed ? ", changed" : ""}${isDoubtful(word) ? ", doubtful" : ""}${memoryShare(word)}`,
      },
      word.text,
    );
    span.style.setProperty("--weight", (weightOf(word) ?? 0).toFixed(3));
    return span;
  });
}

const isDoubtful = (word) => word.confidence < DOUBTFUL && /[\p{L}\p{N}]/u.test(word.text);

/** How much the memory had to say; words of a long text come without it. */
export const weightOf = (word) => (word.taught ? 1 : word.mixing_weight);

const memoryShare = (word) => (weightOf(word) === undefined ? "" : `, memory ${percent(weightOf(word))}`);

/** The base model's: what the memory changed is struck out. */
export function showBaseWords(place, translation) {
  fill(place, translation, (word) =>
    element(word.changed ? "del" : "span", { class: word.changed ? "changed" : null }, word.text),
  );
}

/** Between the words stays what the text has there: spaces, line breaks. */
function fill(place, { text, words }, make) {
  const parts = [];
  let cursor = 0;
  for (const word of words) {
    // Where the tokenizer's text differs from the translation's, a word has no place of its own.
    if (word.start === null) continue;
    parts.push(text.slice(cursor, word.start));
    const span = make(word);
    parts.push(span);
    wordOf.set(span, word);
    cursor = word.end;
  }
  place.replaceChildren(...parts, text.slice(cursor));
}

/** The word that an element shows. */
export const wordOf = new WeakMap();

/** One word is reached with Tab, the others from there with arrows, Home and End. */
export function moveWithArrows(place) {
  place.addEventListener("keydown", (event) => {
    const words = [...place.querySelectorAll(".word")];
    const at = words.indexOf(event.target);
    const to = {
      ArrowRight: at + 1,
      ArrowDown: at + 1,
      ArrowLeft: at - 1,
      ArrowUp: at - 1,
      Home: 0,
      End: words.length - 1,
    }[event.key];
    if (at < 0 || to === undefined) return;
    event.preventDefault();
    const next = words[Math.min(words.length - 1, Math.max(0, to))];
    for (const word of words) word.tabIndex = word === next ? 0 : -1;
    next.focus();
  });
}
