// What the page knows, and how its parts hear of changes.
//
// Events: "ready" (server and memories are known), "memories" (their list is new), "chosen" (languages or
// memory picked), "examples" (a memory's content or fit changed: translate again), "translated" (what is shown
// is new: {text, complete, empty}, or null), "lost" and "back" (the server), "unauthorised" (401 or 403).

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

/** The memories that a translation draws on now. */
export const memoriesInUse = () =>
  state.memories.filter(
    (memory) =>
      partOf(memory, pairName())?.segments &&
      (state.memory === AUTOMATIC ? memory.automatic : memory.id === state.memory),
  );

export function languageName(code) {
  const { pairs } = state.status;
  return (
    pairs.find((pair) => pair.source === code)?.source_name ??
    pairs.find((pair) => pair.target === code)?.target_name ??
    code
  );
}

/** What was chosen, for this tab after a reload; new tabs begin with what was chosen last in any. */
export function remember(name, value) {
  sessionStorage.setItem(`kster-${name}`, value);
  localStorage.setItem(`kster-${name}`, value);
}
export const remembered = (name) =>
  sessionStorage.getItem(`kster-${name}`) ?? localStorage.getItem(`kster-${name}`);

/** The text to translate, for this tab only: after a reload it is there again, with its languages. */
export function keepText(text) {
  try {
    sessionStorage.setItem("kster-text", text);
  } catch {
    sessionStorage.removeItem("kster-text"); // too long for the browser to keep
  }
}
export const keptText = () => sessionStorage.getItem("kster-text") ?? "";
