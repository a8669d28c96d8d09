// Correcting the adapted translation and teaching it.

import { post } from "./api.js";
import { chooseMemory } from "./choices.js";
import { byId, setOptions } from "./dom.js";
import { agreed } from "./language.js";
import { notify } from "./notices.js";
import { loadMemories } from "./memories.js";
import { shown, shownText } from "./sheets.js";
import { AUTOMATIC, mayWrite, memoryById, on, pairName, partOf, state } from "./state.js";
import { translate } from "./translate.js";

const NEW = "new";
const NEW_NAME = "My examples";

const form = byId("teach");
const text = byId("teach-text");
const target = byId("teach-memory");
const question = byId("teach-question");
const read = byId("adapted");
let editing = null; // the text whose translation is being edited

export function setUpTeaching() {
  byId("edit").addEventListener("click", () => beginEditing());
  on("alternative", beginEditing);
  byId("teach-cancel").addEventListener("click", cancel);
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    teach();
  });
  text.addEventListener("keydown", (event) => {
    if (event.key === "Escape") cancel();
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) form.requestSubmit();
  });
  text.addEventListener("input", dismissQuestion);
  on("translated", (now) => {
    if (editing !== null && editing === now?.text) return; // the same text again: what is being written stays
    endEditing();
    byId("adapted-actions").hidden = !now || now.empty;
    byId("edit").hidden = !now?.complete;
  });
  on("ready", () => {
    byId("edit").disabled = !mayWrite();
    byId("reason").hidden = mayWrite();
    byId("reason").textContent = mayWrite() ? "" : "This key may only read.";
  });
}

/** given: what to begin with instead of the translation. */
function beginEditing(given = shownText()) {
  const able = teachable();
  setOptions(
    target,
    [...able.map((memory) => [memory.id, memory.name]), [NEW, `a new memory, “${NEW_NAME}”`]],
    preferred(able),
  );
  editing = shown.asked.text;
  text.value = given;
  read.hidden = true;
  form.hidden = false;
  byId("adapted-actions").hidden = true;
  text.focus();
}

const dismissQuestion = () => question.dispatchEvent(new Event("dismiss"));

function endEditing() {
  dismissQuestion();
  editing = null;
  form.hidden = true;
  read.hidden = false;
}

function cancel() {
  endEditing();
  byId("adapted-actions").hidden = false;
  byId("edit").focus();
}

async function teach() {
  const pair = pairName();
  const examples = examplesOf(shown.asked.text, shownText(), text.value);
  const submit = form.querySelector("[type=submit]");
  if (submit.disabled) return;
  submit.disabled = true;
  try {
    const targets = examples.map((example) => example.target).join("\n");
    if (!(await agreed(question, targets, state.target))) {
      text.focus();
      return;
    }
    const id =
      target.value === NEW ? (await post("/v1/memories", { name: NEW_NAME })).id : Number(target.value);
    let segment = null;
    for (const example of examples) segment = await post(`/v1/memories/${id}/segments`, { ...example, pair });
    await loadMemories();
    const { name } = memoryById(id);
    notify(`${name} has learned ${examples.length > 1 ? `${examples.length} lines` : "it"}.`, [
      examples.length > 1 ? "Show the last one" : "Show the example",
      () => {
        location.hash = `#/memory/${id}/${pair}/${segment.id}`;
      },
    ]);
    editing = null;
    if (used(id)) translate({ learned: true });
    else chooseMemory(String(id)); // so that the effect is seen
    byId("source-text").focus();
  } catch (error) {
    notify(error.message);
  } finally {
    submit.disabled = false;
  }
}

/**
 * What is to be learned: the lines that were corrected, or all if none was. Lines are translated one by one, and a
 * line break cannot be learned; a text whose lines do not pair up any more is one example.
 */
function examplesOf(source, before, after) {
  const [sources, old, targets] = [source, before, after].map(linesOf);
  if (sources.length !== targets.length) return [{ source: source.trim(), target: after.trim() }];
  const pairs = sources.map((line, i) => ({ source: line, target: targets[i] }));
  const corrected = pairs.filter((pair, i) => pair.target !== old[i]);
  return corrected.length ? corrected : pairs;
}

const linesOf = (lines) =>
  lines
    .split("\n")
    .map((line) => line.trim())
    .filter((line) => line);

/** Memories that take examples of this language pair. Shared ones have one pair only. */
const teachable = () =>
  state.memories.filter((memory) => memory.writable && (!memory.shared || partOf(memory, pairName())));

function preferred(able) {
  const chosen = able.find((memory) => memory.id === state.memory);
  const automatic = able.filter((memory) => memory.automatic);
  const fitting = chosen ?? automatic.find((memory) => partOf(memory, pairName())) ?? automatic[0];
  return fitting?.id ?? NEW;
}

const used = (id) => state.memory === id || (state.memory === AUTOMATIC && memoryById(id).automatic);
