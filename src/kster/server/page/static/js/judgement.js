// What is thought of a translation: how likely it is right, and what else it could have been.

import { byId, element } from "./dom.js";
import { percent } from "./format.js";
import { emit, mayWrite } from "./state.js";

/** Words that are less likely right are marked: at one half, most of a weak sentence would be. */
export const DOUBTFUL = 0.35;

/** translations: of the parts that are there; the mean of what is said of them, by their lengths. */
export function showConfidence(translations) {
  const place = byId("confidence");
  const judged = translations.filter((each) => each.confidence !== undefined && each.text.trim());
  place.hidden = judged.length === 0;
  if (place.hidden) return;
  const size = (sum, each) => sum + each.source.length;
  const sure = judged.reduce((sum, each) => sum + each.confidence * each.source.length, 0);
  const doubtful = judged.flatMap((each) => each.words).filter((word) => word.confidence < DOUBTFUL).length;
  place.textContent = `Confidence ${percent(sure / judged.reduce(size, 0))}${
    doubtful ? `; ${doubtful} ${doubtful > 1 ? "words" : "word"} to look at` : ""
  }`;
}

/** Each can be taken as a correction, to be taught as it is or changed. */
export function showAlternatives(texts) {
  const place = byId("alternatives");
  place.hidden = texts.length === 0;
  const line = (text) =>
    element(
      "li",
      {},
      element(
        "button",
        { type: "button", class: "link", disabled: !mayWrite(), click: () => emit("alternative", text) },
        text,
      ),
    );
  byId("alternative-list").replaceChildren(...texts.map(line));
}
