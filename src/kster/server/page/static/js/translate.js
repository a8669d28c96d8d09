// Translating as you type; a long text part by part.

import { post } from "./api.js";
import { canSwap, choose } from "./choices.js";
import { byId } from "./dom.js";
import { count } from "./format.js";
import { notify } from "./notices.js";
import { partsOf } from "./parts.js";
import {
  inShort,
  layOut,
  showFailure,
  showNothing,
  showPart,
  showProgress,
  shown,
  shownText,
} from "./sheets.js";
import { chosenMemories, keepText, keptText, on, state } from "./state.js";
import { wordOf } from "./words.js";

const ALTERNATIVES = 3; // of a short text
const WAIT = 250; // milliseconds without a key before the text is sent
const source = byId("source-text");
const results = byId("results");

let latest = 0; // number of the newest request; answers to others are dropped
let waiting = null; // the newest request that was not sent yet
let busy = false;
let stopped = false; // the rest of a long text is not wanted now
let pause; // runs while a text is being written

export function setUpTranslation() {
  if (!source.value) source.value = keptText();
  source.addEventListener("input", () => {
    latest += 1; // whatever is on its way is for another text
    showCount();
    clearTimeout(pause);
    pause = setTimeout(translate, WAIT);
  });
  byId("clear").addEventListener("click", () => setText(""));
  byId("swap").addEventListener("click", swap);
  byId("copy").addEventListener("click", copy);
  byId("stop").addEventListener("click", stop);
  byId("go-on").addEventListener("click", () => translate());
  on("chosen", () => translate());
  on("examples", () => translate({ afresh: true }));
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

/** learned: shows that something was just taught; afresh: a memory has changed, so nothing is kept of before. */
export function translate({ learned = false, afresh = learned } = {}) {
  if (state.source === null) return; // "ready" will ask
  clearTimeout(pause); // whatever asked for this, the text as it is now need not be sent again
  latest += 1;
  waiting = null;
  stopped = false;
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
    const { source, target } = state;
    waiting = { serial: latest, learned, afresh, text, source, target, memories: chosenMemories() };
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
    const parts = partsOf(asked.text);
    if (parts.length > 1) await workThrough(asked, parts);
    else await workOut(asked, parts[0]);
  }
  busy = false;
  results.setAttribute("aria-busy", "false");
}

/** A short text: what was shown before stays until the answer is there. */
async function workOut(asked, part) {
  try {
    const answer = await ask(asked, part, "tokens", 1);
    if (asked.serial !== latest) return;
    layOut(asked, [{ ...part, answer }]);
    showProgress();
  } catch (error) {
    if (asked.serial === latest) showFailure(error);
  }
}

/** A long text: each part is shown when it is there, without the examples behind its words (see explainWord). */
async function workThrough(asked, parts) {
  const before = answersKept(asked);
  for (const part of parts) part.answer = before.get(part.text);
  layOut(asked, parts);
  for (const part of parts) {
    showProgress();
    if (part.answer) continue;
    try {
      const answer = await ask(asked, part, false);
      if (shown?.parts === parts) showPart(part, answer); // kept, even if the text is being changed
      if (asked.serial !== latest) return;
    } catch (error) {
      if (asked.serial === latest) showProgress(inShort(error));
      return;
    }
    if (stopped) break;
  }
  showProgress(stopped ? "Stopped." : null);
}

function stop() {
  stopped = true;
  showProgress("Stopped.");
}

/** Answers for parts of the text that was shown before: they are good for this one, too, unless more has changed. */
function answersKept(asked) {
  const { source, target, memories } = asked;
  const request = JSON.stringify({ source, target, memories });
  const same =
    shown && !asked.afresh && request === JSON.stringify(shown.asked, ["source", "target", "memories"]);
  return new Map(same ? shown.parts.map((part) => [part.text, part.answer]) : []);
}

const ask = async ({ source, target, memories }, { text }, explain, matches = 0) =>
  withSegments(
    await post("/v1/translate", {
      ...{ text, source, target, memories, compare: true, explain, matches, confidence: true },
      alternatives: matches ? ALTERNATIVES : 0,
    }),
  );

/** An answer names each segment once; here words and tokens get the segments that they refer to by number. */
function withSegments(answer) {
  const named = (reference) => ({ ...answer.segments[reference.number], ...reference });
  const words = answer.segments ? answer.translations.flatMap((each) => each.words) : [];
  for (const word of words) {
    word.taught = answer.segments[word.taught];
    word.segments = word.segments.map(named);
    for (const token of word.tokens) token.examples = token.examples.map(named);
  }
  return answer;
}

/** Asks for the examples behind a part of a long text; the element that shows the same word then. */
export async function explainWord(word) {
  const { asked, parts } = shown;
  const part = parts.find((each) => each.adapted.contains(word));
  const { start } = wordOf.get(word);
  const focused = document.activeElement === word;
  const answer = await ask(asked, part, "tokens");
  if (!word.isConnected) return word; // another text is shown by now
  showPart(part, answer);
  const words = [...part.adapted.querySelectorAll(".word")];
  const again = words.find((each) => wordOf.get(each).end > start) ?? words[0];
  if (focused) again.focus();
  return again;
}

function showCount() {
  keepText(source.value);
  const limit = state.status?.limits.characters;
  const length = source.value.length;
  byId("clear").hidden = length === 0;
  byId("samples").hidden = length > 0;
  byId("source-count").textContent = length ? `${count(length)}${limit ? ` / ${count(limit)}` : ""}` : "";
  byId("source-count").classList.toggle("over", limit !== undefined && length > limit);
}

function swap() {
  if (!canSwap()) return;
  if (shown) source.value = shownText();
  showCount();
  choose(state.target, state.source);
}

async function copy() {
  try {
    await navigator.clipboard.writeText(shownText());
    notify("Copied.");
  } catch {
    notify("The browser did not allow copying.");
  }
}
