// Asking for an API key when the server wants one.

import { button, byId, element } from "./dom.js";
import { currentKey, forgetKey, keepKey } from "./key-store.js";
import { on, state } from "./state.js";

const dialog = byId("key-dialog");
let tryAgain = () => {};

/** connect: called after a key was entered or forgotten. */
export function setUpKey(connect) {
  tryAgain = connect;
  const open = byId("open-key");
  open.addEventListener("click", () => askForKey());
  on("ready", () => {
    open.hidden = currentKey() === null && !state.status.keys_required;
  });
}

/** problem: why the server did not take the key it was sent. */
export function askForKey(problem) {
  byId("open-key").hidden = false; // the way back to this dialog
  if (dialog.open && !problem) return;
  const field = element("input", {
    type: "password",
    id: "key",
    autocomplete: "off",
    spellcheck: "false",
    required: true,
    "aria-describedby": problem ? "key-problem" : null,
    "aria-invalid": problem ? "true" : null,
  });
  const keep = element("input", { type: "checkbox" });
  const entered = (event) => {
    event.preventDefault();
    keepKey(field.value.trim(), keep.checked);
    dialog.close();
    tryAgain();
  };
  const forget = () => {
    forgetKey();
    dialog.close();
    tryAgain();
  };
  dialog.replaceChildren(
    element(
      "form",
      { submit: entered },
      element("h2", { id: "key-title" }, "API key"),
      element(
        "p",
        { class: "soft" },
        "This server wants a key. Whoever runs it makes one with ",
        element("code", {}, "kster keys add NAME"),
        ".",
      ),
      problem && element("p", { id: "key-problem", class: "wrong", role: "alert" }, problem),
      element("label", { for: "key" }, "Key"),
      field,
      element("label", { class: "check" }, keep, "Keep it on this device"),
      element(
        "div",
        { class: "row" },
        currentKey() && button("Forget the key", forget, "quiet"),
        button("Not now", () => dialog.close(), "quiet"),
        element("button", { class: "button strong" }, "Use this key"),
      ),
    ),
  );
  if (!dialog.open) dialog.showModal();
  field.focus();
}
