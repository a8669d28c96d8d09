// Importing a file: choosing or dropping it, progress, and the report.

import { button, element } from "./dom.js";
import { bytes, count, counted, percent } from "./format.js";
import { cancelButton, followJob, isOver } from "./jobs.js";
import { attempt } from "./notices.js";
import { state } from "./state.js";
import { upload } from "./upload.js";

const ACCEPTED = ".tmx,.xlf,.xliff,.po,.tsv,.csv,.gz,.xz";

/** jobs: the memory's latest; imported: called when something was. */
export function importPanel(memory, pair, jobs, imported) {
  const report = element("div", { class: "stack", role: "status" });
  const input = element("input", {
    type: "file",
    id: "import-file",
    accept: ACCEPTED,
    "aria-label": "File to import",
    change: () => input.files[0] && take(input.files[0]),
  });
  const drop = element(
    "div",
    { class: "drop" },
    input,
    button("Choose a file", () => input.click()),
    element("span", { class: "soft" }, "or drop it here: TMX, XLIFF, PO, TSV, CSV"),
  );
  input.tabIndex = -1; // the button stands for it

  drop.addEventListener("dragover", (event) => {
    event.preventDefault();
    drop.classList.add("over");
  });
  drop.addEventListener("dragleave", () => drop.classList.remove("over"));
  drop.addEventListener("drop", (event) => {
    event.preventDefault();
    drop.classList.remove("over");
    if (event.dataTransfer.files[0]) take(event.dataTransfer.files[0]);
  });

  async function take(file) {
    input.value = "";
    const limit = state.status.limits.upload_mb * 1e6;
    if (file.size > limit) {
      showFailure(report, `${file.name} has ${bytes(file.size)}; this server takes at most ${bytes(limit)}.`);
      return;
    }
    try {
      showProgress(report, `Sending ${file.name}`, 0);
      const job = await upload(`/v1/memories/${memory.id}/import`, file, { pair }, (sent) =>
        showProgress(report, `Sending ${file.name}`, sent),
      );
      await watch(job);
    } catch (error) {
      showFailure(report, error.message);
    }
  }

  async function watch(job) {
    const cancel = cancelButton(job);
    const over = await followJob(job, (now) => {
      showJob(report, now);
      if (!isOver(now)) report.append(cancel);
    });
    if (over.state === "done") await imported();
  }

  const running = jobs.find((job) => job.kind === "import" && job.pair === pair && !isOver(job));
  if (running) attempt(() => watch(running));
  return element(
    "section",
    { class: "panel", "aria-label": "Import" },
    element("h3", {}, "Import a file"),
    drop,
    report,
  );
}

function showJob(place, job) {
  if (job.state === "done") showResult(place, job);
  else if (job.state === "failed") showFailure(place, job.error);
  else if (job.state === "cancelled")
    place.replaceChildren(element("p", { class: "soft" }, `${job.file} was cancelled; nothing was added.`));
  else if (job.phase === "learning")
    showProgress(
      place,
      `Learning ${job.file}: ${count(job.done)} of ${counted(job.total, "unit")}`,
      job.progress,
    );
  else
    showProgress(
      place,
      job.phase === "reading" ? `Reading ${job.file}` : `${job.file} is waiting for its turn`,
    );
}

/** part: from 0 to 1; left out where it is not known. */
function showProgress(place, text, part) {
  let bar = place.querySelector(".bar");
  if (!bar) {
    bar = element("progress", { class: "bar", max: "1", "aria-label": "Import" });
    place.replaceChildren(element("p", { class: "tiny" }), bar);
  }
  if (part === undefined) bar.removeAttribute("value");
  else bar.value = part;
  place.querySelector("p").textContent = part === undefined ? text : `${text} (${percent(part)})`;
}

function showFailure(place, text) {
  place.replaceChildren(element("p", { class: "wrong" }, text));
}

function showResult(place, { file, result }) {
  const { added, drafts, approved, duplicates, rejected, rejections } = result;
  place.replaceChildren(
    element(
      "p",
      {},
      element("strong", {}, `${file}: ${count(added)} added`),
      drafts ? ` (${count(drafts)} as ${drafts === 1 ? "a draft" : "drafts"})` : "",
      approved ? `, ${counted(approved, "draft")} approved` : "",
      `, ${count(duplicates)} there already, ${count(rejected)} rejected`,
    ),
  );
  if (!rejected) return;
  const head = (text, kind) => element("th", { scope: "col", class: kind }, text);
  place.append(
    element(
      "details",
      { open: true },
      element(
        "summary",
        {},
        rejections.length < rejected
          ? `The first ${count(rejections.length)} rejected units`
          : "Rejected units",
      ),
      element(
        "div",
        { class: "scroll", tabindex: "0", role: "region", "aria-label": "Rejected units" },
        element(
          "table",
          { class: "facts-table" },
          element("thead", {}, element("tr", {}, head("Line", "number"), head("Unit"), head("Why"))),
          element(
            "tbody",
            {},
            rejections.map((each) =>
              element(
                "tr",
                {},
                element("td", { class: "number" }, each.line ?? "–"),
                element("td", {}, each.unit ?? "–"),
                element("td", {}, each.reason),
              ),
            ),
          ),
        ),
      ),
    ),
  );
}
