// The report of a fit that is in use: its curve, its losses, and what it was made from.

import { curve } from "./curve.js";
import { element } from "./dom.js";
import { count, counted, day, figure } from "./format.js";

/** fit: GET /v1/memories/ID/fit. */
export function fitReport(fit) {
  const judges = [["Held-out examples", fit.dev], ...(fit.general ? [["General text", fit.general]] : [])];
  // The curve is the mean over these texts, and so must be what it is compared with.
  const knn = judges.reduce((sum, [, losses]) => sum + losses.knn, 0) / judges.length;
  return [
    curve(fit.curve, null, [["kNN-MT", knn]]),
    curveKey(),
    lossTable(judges),
    element("p", { class: "soft tiny" }, facts(fit).filter(Boolean).join(" ")),
  ];
}

export const curveKey = () =>
  element(
    "p",
    { class: "curve-key" },
    element("span", {}, element("i"), "held-out loss, nats a token; the dot is the one kept"),
    element("span", { class: "train" }, element("i"), "training loss"),
  );

function lossTable(judges) {
  const head = (text, kind) => element("th", { scope: "col", class: kind }, text);
  const row = (name, method) =>
    element(
      "tr",
      {},
      element("td", {}, name),
      judges.map(([, losses]) => element("td", { class: "number" }, figure(losses[method], 3))),
    );
  return element(
    "table",
    { class: "facts-table" },
    element(
      "thead",
      {},
      element(
        "tr",
        {},
        head("Nats a token"),
        judges.map(([name]) => head(name, "number")),
      ),
    ),
    element("tbody", {}, row("Base model", "base"), row("kNN-MT, tuned", "knn"), row("KSTER", "kster")),
  );
}

function facts({ train_tokens: tokens, seconds, mixing_weight: weight, bandwidth, since }) {
  return [
    `Learned from ${counted(tokens, "token")}${seconds ? ` in ${figure(seconds.total, 0)} s` : ""}.`,
    weight !== undefined &&
      `On held-out examples λ is ${figure(weight)} and σ ${figure(bandwidth)} on average.`,
    since &&
      `Since ${day(since.finished)}, ${counted(since.added, "example")} added and ${count(since.removed)} removed.`,
  ];
}
