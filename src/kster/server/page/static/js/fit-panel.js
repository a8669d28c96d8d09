// Fitting a memory: starting it, the live curve, and the report.

import { get, post } from "./api.js";
import { curve } from "./curve.js";
import { element, setOptions } from "./dom.js";
import { curveKey, fitReport } from "./fit-report.js";
import { count, counted } from "./format.js";
import { cancelButton, followJob, isOver } from "./jobs.js";
import { examplesChanged } from "./memories.js";
import { attempt, notify } from "./notices.js";

/** jobs: the memory's latest; fitted: called when a fit is done. */
export function fitPanel(memory, pair, jobs, fitted) {
  const running = jobs.find((job) => job.kind === "fit" && job.pair === pair && !isOver(job));
  const report = element("div", { class: "stack" });

  const showReport = async () => {
    const found = await get(`/v1/memories/${memory.id}/fit?pair=${pair}`);
    if (found) report.replaceChildren(...fitReport(found));
  };
  const watch = async (job, start) => {
    start.hidden = true; // until then there is a button that cancels
    const cancel = memory.writable && cancelButton(job);
    const over = await followJob(job, (now) => showJob(report, now, cancel));
    start.hidden = false;
    if (over.state !== "done") return;
    notify(`${memory.name} is fitted.`);
    await Promise.all([showReport(), examplesChanged()]);
    await fitted();
  };
  const form = fitForm(memory, pair, watch, (text) =>
    report.replaceChildren(element("p", { class: "wrong", role: "alert" }, text)),
  );
  if (running) attempt(() => watch(running, form.querySelector("[type=submit]")));
  else showReport().catch(() => {}); // without a report there is still the form

  return element(
    "section",
    { class: "panel", "aria-label": "Fit" },
    element("h3", {}, "Fit"),
    element(
      "p",
      { class: "soft" },
      "Fitting learns from the memory how much to believe its examples. It can be used meanwhile.",
    ),
    memory.writable && form,
    report,
  );
}

function fitForm(memory, pair, watch, fail) {
  const kernel = element("select", { id: "fit-kernel" });
  setOptions(kernel, [
    ["laplacian", "Laplacian"],
    ["gaussian", "Gaussian"],
  ]);
  const k = element("input", { type: "number", id: "fit-k", min: "1", max: "256", value: "16" });
  const steps = element("input", { type: "number", id: "fit-steps", min: "1", max: "100000", value: "400" });
  const start = element("button", { type: "submit", class: "button strong" }, "Start the fit");
  const field = (label, input) =>
    element("div", { class: "field" }, element("label", { for: input.id }, label), input);
  const begin = async (event) => {
    event.preventDefault();
    try {
      const settings = { pair, kernel: kernel.value, k: Number(k.value), steps: Number(steps.value) };
      await watch(await post(`/v1/memories/${memory.id}/fit`, settings), start);
    } catch (error) {
      fail(error.message);
    }
  };
  return element(
    "form",
    { class: "stack", submit: begin },
    element(
      "details",
      {},
      element("summary", {}, "Settings"),
      element(
        "div",
        { class: "row" },
        field("Kernel", kernel),
        field("Neighbours k", k),
        field("Steps at most", steps),
      ),
    ),
    element("div", {}, start),
  );
}

function showJob(place, job, cancel) {
  if (job.state === "cancelled") {
    const kept = "The fit was cancelled; what was in use before still is.";
    place.replaceChildren(element("p", { class: "soft", role: "status" }, kept));
    return;
  }
  if (job.state === "failed") {
    place.replaceChildren(element("p", { class: "wrong", role: "alert" }, job.error));
    return;
  }
  place.replaceChildren(
    ...progress(job),
    cancel || "",
    ...(job.curve.length ? [curve(job.curve, job.total), curveKey()] : []),
  );
}

function progress(job) {
  const known = job.total != null;
  const text =
    {
      keys: `Learning examples: ${counted(job.done, "example")}`,
      caching: `Looking at how the memory answers for its own examples: ${counted(job.done, "token")}`,
      fitting: `Step ${count(job.done)} of at most ${count(job.total ?? 0)}`,
      measuring: `Learning a distance: step ${count(job.done)} of at most ${count(job.total ?? 0)}`,
      translating: `Choosing a length: sentence ${count(job.done)} of at most ${count(job.total ?? 0)}`,
      judging: `Learning how sure to be: sentence ${count(job.done)} of ${count(job.total ?? 0)}`,
    }[job.phase] ?? "Waiting for its turn";
  return [
    element("p", { class: "tiny", role: "status" }, text),
    element("progress", {
      class: "bar",
      max: "1",
      value: known ? String(job.progress) : null,
      "aria-label": "Fit",
    }),
  ];
}
