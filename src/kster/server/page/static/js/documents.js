// Translating a document: dropping or choosing it, progress, download.

import { post, send } from "./api.js";
import { button, byId, element } from "./dom.js";
import { bytes, percent } from "./format.js";
import { chosenMemories, memoriesInUse, state } from "./state.js";
import { upload } from "./upload.js";

const place = byId("document");
const input = byId("document-file");
const source = byId("source");
let latest = 0; // number of the newest document; what happens to others is not shown

export function setUpDocuments() {
  byId("open-document").addEventListener("click", () => input.click());
  input.addEventListener("change", () => input.files[0] && translateDocument(input.files[0]));
  source.addEventListener("dragover", (event) => {
    if (!event.dataTransfer.types.includes("Files")) return; // a piece of text goes into the field
    event.preventDefault();
    source.classList.add("over");
  });
  source.addEventListener("dragleave", () => source.classList.remove("over"));
  source.addEventListener("drop", (event) => {
    const [file] = event.dataTransfer.files;
    if (!file) return;
    event.preventDefault();
    source.classList.remove("over");
    if (state.source !== null) translateDocument(file);
  });
}

async function translateDocument(file) {
  latest += 1;
  const serial = latest;
  const show = (...content) => serial === latest && showLine(...content);
  const limit = state.status.limits.upload_mb * 1e6;
  input.value = "";
  if (file.size > limit) {
    show(failure(`${file.name} has ${bytes(file.size)}; this server takes at most ${bytes(limit)}.`));
    return;
  }
  const into = state.target;
  const fields = { source_lang: state.source, target_lang: into };
  if (chosenMemories()) fields.kster_memories = chosenMemories().join(",");
  const names = memoriesInUse().map((memory) => memory.name);
  const way = names.length ? `with ${names.join(", ")}` : "without a memory";
  try {
    const sending = (sent) => show(...progress(`Sending ${file.name} (${percent(sent)})`, sent));
    sending(0);
    const { document_id: id, document_key: key } = await upload("/v2/document", file, fields, sending);
    await finished(id, key, (done) => show(...progress(`Translating ${file.name} ${way} (${percent(done)})`, done)));
    const content = await (await send("POST", `/v2/document/${id}/result`, { document_key: key })).blob();
    const name = file.name.replace(/(\.[^.]+)?$/, `_${into}$1`);
    const save = element("a", { class: "button strong small", download: name, href: URL.createObjectURL(content) });
    save.append("Download");
    show(element("span", {}, `${name} is ready.`), save, closing());
  } catch (error) {
    show(failure(error.message));
  }
}

/** The server answers when it is done, or after some seconds. */
async function finished(id, key, report) {
  report(0);
  for (;;) {
    const now = await post(`/v2/document/${id}`, { document_key: key });
    if (now.status === "done") return;
    if (now.status === "error") throw new Error(now.message);
    report(now.kster_progress);
  }
}

function showLine(...content) {
  place.hidden = false;
  place.replaceChildren(...content);
}

/** part: from 0 to 1. */
const progress = (text, part) => [
  element("span", {}, text),
  element("progress", { class: "bar", max: "1", value: part, "aria-label": "Document" }),
];

const closing = () => button("Close", () => (place.hidden = true), "quiet small");
const failure = (text) => element("span", { class: "row" }, element("span", { class: "wrong" }, text), closing());
