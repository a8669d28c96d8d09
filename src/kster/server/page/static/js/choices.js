// Picking languages and memory.

import { byId, element, setOptions } from "./dom.js";
import { counted } from "./format.js";
import {
  AUTOMATIC,
  NONE,
  emit,
  memoriesInUse,
  memoryById,
  on,
  pairInfo,
  pairName,
  partOf,
  remember,
  remembered,
  state,
} from "./state.js";

const from = byId("source-language");
const into = byId("target-language");
const memory = byId("memory");

export function setUpChoices() {
  on("ready", () => {
    const [first] = state.status.pairs;
    const before = pairInfo(remembered("pair") ?? "") ?? first;
    setLanguages(before.source, before.target);
    showMemories();
  });
  on("memories", showMemories);
  from.addEventListener("change", () => choose(from.value, into.value));
  into.addEventListener("change", () => choose(from.value, into.value));
  memory.addEventListener("change", () => chooseMemory(memory.value));
  byId("choices").addEventListener("submit", (event) => event.preventDefault());
}

/** Whether the server translates the other way round, too. */
export const canSwap = () => pairInfo(`${state.target}-${state.source}`) !== undefined;

export function choose(source, target) {
  setLanguages(source, target);
  showMemories();
  emit("chosen");
}

export function chooseMemory(value) {
  state.memory = value === AUTOMATIC || value === NONE ? value : Number(value);
  remember("memory", value);
  memory.value = value;
  showInUse();
  emit("chosen");
}

function setLanguages(source, target) {
  const pairs = state.status.pairs;
  const targets = pairs.filter((pair) => pair.source === source);
  state.source = source;
  state.target = targets.some((pair) => pair.target === target) ? target : targets[0].target;
  remember("pair", pairName());
  setOptions(from, unique(pairs.map((pair) => [pair.source, pair.source_name])), state.source);
  setOptions(
    into,
    targets.map((pair) => [pair.target, pair.target_name]),
    state.target,
  );
  byId("swap").disabled = !canSwap();
  byId("source-text").lang = state.source;
  for (const id of ["adapted", "base", "teach-text"]) byId(id).lang = state.target;
}

function showMemories() {
  if (state.source === null) return;
  const wanted = remembered("memory") ?? AUTOMATIC;
  const known = wanted === AUTOMATIC || wanted === NONE || memoryById(wanted);
  const chosen = known ? wanted : AUTOMATIC;
  setOptions(
    memory,
    [
      [AUTOMATIC, "All automatic memories"],
      ...state.memories.map((each) => [String(each.id), `Only ${each.name}`]),
      [NONE, "None: the base model alone"],
    ],
    chosen,
  );
  state.memory = chosen === AUTOMATIC || chosen === NONE ? chosen : Number(chosen);
  showInUse();
}

/** Which memories the translation draws on, by name and size, with a way to each. */
function showInUse() {
  const some = memoriesInUse();
  const chosen = memoryById(state.memory);
  const without = {
    [AUTOMATIC]: `No memory in use: none that is automatic has examples for ${pairInWords()}. Choose one above.`,
    [NONE]: "No memory in use: the base model alone translates.",
  };
  byId("in-use").replaceChildren(
    ...(some.length
      ? ["In use: ", ...some.flatMap((each, at) => [at ? ", " : "", inUseLink(each)])]
      : [without[state.memory] ?? `${chosen.name} has no examples for ${pairInWords()} yet.`]),
  );
}

function inUseLink(each) {
  const size = counted(partOf(each, pairName()).segments, "example");
  return element("span", {}, element("a", { href: `#/memory/${each.id}` }, each.name), ` (${size})`);
}

const pairInWords = () => pairName().replace("-", " → ");
const unique = (options) => [...new Map(options).entries()];
