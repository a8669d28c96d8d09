// The two sheets: the adapted translation and the base model's, part by part.

import { Unreachable } from "./api.js";
import { byId, element } from "./dom.js";
import { count, percent } from "./format.js";
import { closeInspector } from "./inspector.js";
import { showAlternatives, showConfidence } from "./judgement.js";
import { showMatch } from "./match.js";
import { speak } from "./notices.js";
import { AUTOMATIC, NONE, emit, memoryById, state } from "./state.js";
import { showBaseWords, showWords } from "./words.js";

const adapted = byId("adapted");
const base = byId("base");

/**
 * What is shown: {asked, parts, complete}, or null. Each part has, beside what partsOf says, its `answer`
 * (absent until there is one) and its places on both sheets.
 */
export let shown = null;

/** The translation as far as it goes. */
export const shownText = () =>
  shown.parts
    .filter((part) => part.answer)
    .map((part) => part.before + translationOf(part).text)
    .join("");

const translationOf = (part) => part.answer.translations[0];

/** Places for all parts; those that have an answer already are shown. */
export function layOut(asked, parts) {
  closeInspector();
  for (const part of parts) {
    part.adapted = element("span", { class: "part" });
    part.base = element("span", { class: "part" });
    if (part.answer) fill(part);
  }
  shown = { asked, parts, complete: parts.every((part) => part.answer) };
  adapted.classList.toggle("learned", asked.learned);
  adapted.replaceChildren(...parts.flatMap((part) => [part.before, part.adapted]));
  base.replaceChildren(...parts.flatMap((part) => [part.before, part.base]));
  showMatch(byId("match"), parts.length > 1 ? [] : translationOf(parts[0]).matches);
  showAlternatives(parts.length > 1 ? [] : translationOf(parts[0]).alternatives);
  describe();
}

/** The answer for one part of what is shown. */
export function showPart(part, answer) {
  part.answer = answer;
  fill(part);
  shown.complete = shown.parts.every((each) => each.answer);
  describe();
}

function fill(part) {
  showWords(part.adapted, translationOf(part));
  showBaseWords(part.base, translationOf(part).base);
}

function describe() {
  const first = adapted.querySelector(".word");
  if (first && !adapted.querySelector(".word[tabindex='0']")) first.tabIndex = 0;
  const answer = shown.parts.find((part) => part.answer)?.answer;
  byId("adapted-origin").textContent = answer ? originOf(answer) : "";
  byId("base-origin").textContent = "without any memory";
  byId("legend").hidden = !answer || answer.method === "base";
  byId("legend-weight").hidden = shown.parts.length > 1;
  showConfidence(shown.parts.filter((part) => part.answer).map(translationOf));
  if (shown.complete) speak(inWords());
  emit("translated", { text: shown.asked.text, complete: shown.complete, empty: !answer });
}

function inWords() {
  const changes = shown.parts
    .flatMap((part) => translationOf(part).words)
    .filter((word) => word.changed).length;
  const change = changes ? `${count(changes)} words changed by the memory.` : "Nothing changed by the memory.";
  return `${shown.parts.length > 1 ? "The whole text is translated." : shownText()} ${change}`;
}

const SMOOTHERS = { memory: "fitted", model: "with the model’s fit", default: "not fitted" };

function originOf(answer) {
  if (answer.method !== "base")
    return `${answer.memories.map((memory) => memory.name).join(", ")} · ${SMOOTHERS[answer.smoother] ?? ""}`;
  if (state.memory === NONE) return "no memory chosen: the same as the base model";
  const name = state.memory === AUTOMATIC ? "no memory" : memoryById(state.memory)?.name;
  return `${name} ${state.memory === AUTOMATIC ? "has" : "has no"} examples for this pair yet`;
}

// How far a long text is -------------------------------------------------------------------------------

/** problem: why it does not go on by itself, if it does not; null while it does. */
export function showProgress(problem = null) {
  const { parts, complete } = shown;
  const size = (some) => some.reduce((sum, part) => sum + part.text.length, 0);
  const done = size(parts.filter((part) => part.answer)) / size(parts);
  byId("progress").hidden = complete;
  byId("progress-bar").value = done;
  byId("progress-text").textContent = `${percent(done)} translated${problem ? `. ${problem}` : ""}`;
  byId("stop").hidden = problem !== null;
  byId("go-on").hidden = problem === null;
}

// No translation -----------------------------------------------------------------------------------------

export function showNothing() {
  forget();
  adapted.replaceChildren(
    element("span", { class: "hint" }, "The adapted translation appears here as you write."),
  );
  base.replaceChildren(element("span", { class: "hint" }, "What the model says by itself."));
}

export const inShort = (error) =>
  error instanceof Unreachable ? "No translation: the server does not answer." : error.message;

export function showFailure(error) {
  forget();
  adapted.replaceChildren(element("p", { class: "failure", role: "alert" }, inShort(error)));
  base.replaceChildren();
}

function forget() {
  shown = null;
  closeInspector();
  showMatch(byId("match"));
  showAlternatives([]);
  showConfidence([]);
  for (const id of ["legend", "progress"]) byId(id).hidden = true;
  for (const id of ["adapted-origin", "base-origin"]) byId(id).textContent = "";
  emit("translated", null);
}
