// What the page knows, and how its parts hear of changes.
//
// Events: "ready" (server and memories are known), "memories" (their list is new), "chosen" (languages or
// memory picked), "examples" (a memory's content or fit changed: translate again), "translated" (with the text
// whose translation is shown, or null), "lost" and "back" (the server), "unauthorised" (401 or 403).

export const AUTOMATIC = "auto";
export const NONE = "none";

export const state = {
  status: null, // GET /v1/status
  memories: [], // GET /v1/memories
  source: null, // language codes; null until all is "ready"
  target: null,
  memory: AUTOMATIC, // AUTOMATIC, NONE, or an id
};

const bus = new EventTarget();

export const on = (name, act) => bus.addEventListener(name, (event) => act(event.detail));
export const emit = (name, detail) => bus.dispatchEvent(new CustomEvent(name, { detail }));

export const pairName = () => `${state.source}-${state.target}`;
export const pairInfo = (name) => state.status.pairs.find((pair) => pair.pair === name);
export const memoryById = (id) => state.memories.find((memory) => memory.id === Number(id));
export const partOf = (memory, pair) => memory.pairs.find((part) => part.pair === pair);
export const mayWrite = () => state.status !== null && state.status.scope !== "read";

/** What to ask /v1/translate for: undefined lets the server take those that are automatic. */
export function chosenMemories() {
  if (state.memory === AUTOMATIC) return undefined;
  return state.memory === NONE ? [] : [state.memory];
}

/** Texts that stay as they were when the page is opened again. */
export const remember = (name, value) => localStorage.setItem(`kster-${name}`, value);
export const remembered = (name) => localStorage.getItem(`kster-${name}`);
