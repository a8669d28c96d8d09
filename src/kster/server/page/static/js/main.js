// The page, put together.

import { Refused, get, keyHeaders } from "./api.js";
import { setUpChoices } from "./choices.js";
import { setUpConnection } from "./connection.js";
import { byId } from "./dom.js";
import { setUpDocuments } from "./documents.js";
import { setUpDrawer } from "./drawer.js";
import { setUpInspector } from "./inspector.js";
import { askForKey, setUpKey } from "./key.js";
import { setUpLanguage } from "./language.js";
import { loadMemories } from "./memories.js";
import { hideBanner, showBanner } from "./notices.js";
import { setUpSamples } from "./samples.js";
import { setUpShortcuts } from "./shortcuts.js";
import { emit, on, state } from "./state.js";
import { setUpTeaching } from "./teach.js";
import { setUpTerms } from "./terms-view.js";
import { setUpTheme } from "./theme.js";
import { explainWord, setUpTranslation } from "./translate.js";
import { moveWithArrows } from "./words.js";

/** Learn what the server has and what we may do; ask for a key where one is wanted. */
async function connect() {
  try {
    state.status = await get("/v1/status");
    await loadMemories();
  } catch (error) {
    if (error instanceof Refused && error.status !== 401 && error.status !== 403)
      showBanner("The server refused.", error.message);
    return; // for a key and for a lost connection others take over
  }
  hideBanner();
  byId("version").textContent = `KSTER ${state.status.version}`;
  emit("ready");
}

/** A key may have been revoked, or may not do everything: only the former asks for another one. */
let checking = false;
async function checkKey() {
  if (checking) return;
  checking = true;
  try {
    const answer = await fetch("/v1/status", { headers: keyHeaders() });
    if (answer.status === 401) askForKey();
    if (answer.status === 403) askForKey("The server does not know this key, or it was revoked.");
  } catch {
    emit("lost");
  } finally {
    checking = false;
  }
}

setUpTheme();
setUpConnection();
setUpKey(connect);
setUpChoices();
setUpTranslation();
setUpLanguage();
setUpTeaching();
setUpSamples();
setUpInspector(byId("adapted"), explainWord);
moveWithArrows(byId("adapted"));
setUpDocuments();
setUpShortcuts();
setUpTerms();
setUpDrawer();
on("unauthorised", checkKey);
on("back", () => state.source ?? connect());
connect();
