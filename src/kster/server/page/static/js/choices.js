// Picking languages and memory.

import { byId, setOptions } from "./dom.js";
import { count } from "./format.js";
import {
  AUTOMATIC,
  NONE,
  emit,
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
  const serving = state.memories.filter((each) => each.automatic && partOf(each, pairName()));
  setOptions(
    memory,
    [
      [
        AUTOMATIC,
        serving.length ? `Automatic: ${serving.map((each) => each.name).join(", ")}` : "Automatic: none yet",
      ],
      ...state.memories.map((each) => [String(each.id), `${each.name} (${sizeFor(each)})`]),
      [NONE, "No memory"],
    ],
    chosen,
  );
  state.memory = chosen === AUTOMATIC || chosen === NONE ? chosen : Number(chosen);
}

function sizeFor(each) {
  const part = partOf(each, pairName());
  return part ? count(part.segments) : `nothing for ${pairName()}`;
}

const unique = (options) => [...new Map(options).entries()];
