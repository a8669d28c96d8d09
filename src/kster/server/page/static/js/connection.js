// Noticing that the server is gone, and that it is back.

import { hideBanner, notify, showBanner } from "./notices.js";
import { emit, on } from "./state.js";

const PAUSE = 1500; // milliseconds between two looks
let lost = false;

export function setUpConnection() {
  on("lost", () => {
    if (lost) return;
    lost = true;
    showBanner(
      "The server does not answer.",
      "What you wrote is still here; the page goes on when the server is back.",
    );
    setTimeout(look, PAUSE);
  });
}

async function look() {
  try {
    const answer = await fetch("/health");
    if (!answer.ok) throw new Error("not well");
  } catch {
    setTimeout(look, PAUSE);
    return;
  }
  lost = false;
  hideBanner();
  notify("The server is back.");
  emit("back");
}
