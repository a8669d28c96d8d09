// The list of memories, as the server has it now.

import { get } from "./api.js";
import { byId } from "./dom.js";
import { emit, state } from "./state.js";

export async function loadMemories() {
  state.memories = await get("/v1/memories");
  byId("open-memories").textContent = state.memories.length
    ? `Memories (${state.memories.length})`
    : "Memories";
  emit("memories");
}

/** After examples were added or removed: sizes are new, and so is the translation. */
export async function examplesChanged() {
  emit("examples");
  await loadMemories();
}
