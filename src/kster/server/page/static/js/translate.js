// Translating as you type.

import { Unreachable, post } from "./api.js";
import { canSwap, choose } from "./choices.js";
import { byId, element } from "./dom.js";
import { count } from "./format.js";
import { closeInspector } from "./inspector.js";
import { showMatch } from "./match.js";
import { notify, speak } from "./notices.js";
import { AUTOMATIC, NONE, chosenMemories, emit, memoryById, on, state } from "./state.js";
import { showBaseWords, showWords } from "./words.js";

const WAIT = 250; // milliseconds without a key before the text is sent
const source = byId("source-text");
const adapted = byId("adapted");
const base = byId("base");
const results = byId("results");

/** The translation that is shown: {asked, answer}. */
export let shown = null;

let latest = 0; // number of the newest request; answers to others are dropped
let waiting = null; // the newest request that was not sent yet
let busy = false;
let pause; // runs while a text is being written

export function setUpTranslation() {
  source.addEventListener("input", () => {
    latest += 1; // whatever is on its way is for another text
    showCount();
    clearTimeout(pause);
    pause = setTimeout(translate, WAIT);
  });
  byId("clear").addEventListener("click", () => setText(""));
  byId("swap").addEventListener("click", swap);
  byId("copy").addEventListener("click", copy);
  on("chosen", () => translate());
  on("examples", () => translate());
  on("back", () => translate());
  on("ready", () => {
    showCount();
    translate();
  });
}

export function setText(text) {
  source.value = text;
  showCount();
  source.focus();
  translate();
}

/** learned: shows that something was just taught. */
export function translate({ learned = false } = {}) {
  if (state.source === null) return; // "ready" will ask
  clearTimeout(pause); // whatever asked for this, the text as it is now need not be sent again
  latest += 1;
  waiting = null;
  const text = source.value;
  const limit = state.status.limits.characters;
  if (!text.trim()) showNothing();
  else if (text.length > limit)
    showFailure(
      new Error(
        `This text has ${count(text.length)} characters; the server takes at most ${count(limit)} at once.`,
      ),
    );
  else {
    waiting = {
      serial: latest,
      learned,
      text,
      source: state.source,
      target: state.target,
      memories: chosenMemories(),
    };
    work();
  }
}

/** One request at a time: the server would not begin the next any sooner, and most are out of date by then. */
async function work() {
  if (busy) return;
  busy = true;
  results.setAttribute("aria-busy", "true");
  while (waiting) {
    const asked = waiting;
    waiting = null;
    try {
      const { serial, learned, ...request } = asked;
      const answer = await post("/v1/translate", { ...request, compare: true, explain: true, matches: 1 });
      if (serial === latest) show(asked, answer);
    } catch (error) {
      if (asked.serial === latest) showFailure(error);
    }
  }
  busy = false;
  results.setAttribute("aria-busy", "false");
}

// Showing -------------------------------------------------------------------------------------------

function show(asked, answer) {
  const [translation] = answer.translations;
  shown = { asked, answer, translation };
  closeInspector();
  showWords(adapted, translation);
  showBaseWords(base, translation.base);
  showMatch(byId("match"), translation.matches);
  adapted.classList.toggle("learned", asked.learned);
  byId("adapted-origin").textContent = originOf(answer);
  byId("base-origin").textContent = "without any memory";
  byId("legend").hidden = answer.method === "base";
  const changes = translation.words.filter((word) => word.changed).length;
  speak(
    `${translation.text} ${changes ? `${count(changes)} words changed by the memory.` : "Nothing changed by the memory."}`,
  );
  emit("translated", asked.text);
}

const SMOOTHERS = { memory: "fitted", model: "with the model’s fit", default: "not fitted" };

function originOf(answer) {
  if (answer.method !== "base")
    return `${answer.memories.map((memory) => memory.name).join(", ")} · ${SMOOTHERS[answer.smoother] ?? ""}`;
  if (state.memory === NONE) return "no memory chosen: the same as the base model";
  const name = state.memory === AUTOMATIC ? "no memory" : memoryById(state.memory)?.name;
  return `${name} ${state.memory === AUTOMATIC ? "has" : "has no"} examples for this pair yet`;
}

function showNothing() {
  forget();
  adapted.replaceChildren(
    element("span", { class: "hint" }, "The adapted translation appears here as you write."),
  );
  base.replaceChildren(element("span", { class: "hint" }, "What the model says by itself."));
}

function showFailure(error) {
  forget();
  const text = error instanceof Unreachable ? "No translation: the server does not answer." : error.message;
  adapted.replaceChildren(element("p", { class: "failure", role: "alert" }, text));
  base.replaceChildren();
}

function forget() {
  shown = null;
  closeInspector();
  showMatch(byId("match"));
  byId("legend").hidden = true;
  byId("adapted-origin").textContent = "";
  byId("base-origin").textContent = "";
  emit("translated", null);
}

function showCount() {
  const limit = state.status?.limits.characters;
  const length = source.value.length;
  byId("clear").hidden = length === 0;
  byId("samples").hidden = length > 0;
  byId("source-count").textContent = length ? `${count(length)}${limit ? ` / ${count(limit)}` : ""}` : "";
  byId("source-count").classList.toggle("over", limit !== undefined && length > limit);
}

// Doing ---------------------------------------------------------------------------------------------

function swap() {
  if (!canSwap()) return;
  if (shown) source.value = shown.translation.text;
  showCount();
  choose(state.target, state.source);
}

async function copy() {
  try {
    await navigator.clipboard.writeText(shown.translation.text);
    notify("Copied.");
  } catch {
    notify("The browser did not allow copying.");
  }
}
