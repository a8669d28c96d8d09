// Noticing that a text is in another language than it should be.

import { post } from "./api.js";
import { choose } from "./choices.js";
import { button, byId, debounced, element } from "./dom.js";
import { languageName, on, state } from "./state.js";

const LOOKED_AT = 1000; // characters
const FEWEST = 3; // words: less says little
const SURE = 90; // percent
const WAIT = 500; // milliseconds without a key

const text = byId("source-text");
const offer = byId("other-language");
let refused = null; // a language that was offered for this text and not wanted

/** The language that a text is surely in, if it is another one than expected; null otherwise. */
async function otherThan(expected, text) {
  if (text.trim().split(/\s+/).length < FEWEST) return null;
  const [{ language, confidence }] = await post("/detect", { q: text.slice(0, LOOKED_AT) });
  return language !== expected && confidence >= SURE ? language : null;
}

// The text to translate ----------------------------------------------------------------------------------

export function setUpLanguage() {
  text.addEventListener("input", debounced(look, WAIT));
  on("ready", look);
  on("chosen", look);
}

async function look() {
  const { value } = text;
  if (!value.trim()) refused = null;
  if (state.source === null) return;
  const language = await otherThan(state.source, value).catch(() => null);
  if (text.value !== value) return; // it is looked at again
  const known = state.status.pairs.some((pair) => pair.source === language);
  offer.hidden = !known || language === refused || language === state.source;
  if (offer.hidden) return;
  offer.replaceChildren(
    element("span", {}, `This looks like ${languageName(language)}.`),
    button(`Translate from ${languageName(language)}`, () => choose(language, state.source), "small"),
    button(`It is ${languageName(state.source)}`, () => keep(language), "quiet small"),
  );
}

function keep(language) {
  refused = language;
  offer.hidden = true;
  text.focus();
}

// What is to be taught -----------------------------------------------------------------------------------

/**
 * Whether a text may be taught as one in this language. Where it seems to be in another, somebody is asked, in
 * `place`; sending place "dismiss" means no.
 */
export async function agreed(place, text, language) {
  const other = await otherThan(language, text).catch(() => null);
  if (other === null) return true;
  const answer = await new Promise((resolve) => {
    place.replaceChildren(
      element("span", {}, `This looks like ${languageName(other)}, not ${languageName(language)}.`),
      button("Teach it anyway", () => resolve(true), "small"),
      button("Change it", () => resolve(false), "quiet small"),
    );
    place.hidden = false;
    place.addEventListener("dismiss", () => resolve(false), { once: true });
    place.querySelector("button:last-child").focus(); // a second Enter must not teach it
  });
  place.hidden = true;
  return answer;
}

/** The place for that question. */
export const questionPlace = () => element("div", { class: "question", role: "alert", hidden: true });
