// Changing examples: which of them teach, and undoing what was changed.

import { call, post } from "./api.js";
import { element } from "./dom.js";
import { examplesChanged } from "./memories.js";
import { attempt, notify } from "./notices.js";

/** By the names that the server has for them. */
export const STATES = { live: "Approved", draft: "Drafts", rejected: "Rejected", superseded: "Replaced" };
const BADGES = { draft: "draft", rejected: "rejected", superseded: "replaced" };
const SAID = { approved: "approved", rejected: "rejected" };

const stateOf = ({ status, superseded_by: newer }) =>
  newer !== null ? "superseded" : status === "approved" ? "live" : status;

const addressOf = (memory, pair, id, more = "") =>
  `/v1/memories/${memory.id}/segments/${id}${more}?pair=${encodeURIComponent(pair)}`;

/** Says that an example does not teach, and why; null where it does. */
export function statusBadge(segment) {
  const state = stateOf(segment);
  return state === "live" ? null : element("span", { class: `badge ${state}` }, BADGES[state]);
}

/** Buttons that approve, reject or restore; kind: their look. */
export function statusButtons(memory, pair, segment, then, kind) {
  const offered = {
    live: [["Reject", "rejected"]],
    draft: [
      ["Approve", "approved"],
      ["Reject", "rejected"],
    ],
    rejected: [["Approve", "approved"]],
    superseded: [["Restore", "approved"]],
  }[stateOf(segment)];
  return offered.map(([label, status]) =>
    element(
      "button",
      {
        type: "button",
        class: `button ${kind}`,
        "aria-label": `${label} ${segment.source}`,
        click: () => changeStatus(memory, pair, segment, status, then),
      },
      label,
    ),
  );
}

function changeStatus(memory, pair, segment, status, then) {
  return attempt(async () => {
    const { beside } = await setStatus(memory, pair, segment.id, status);
    await examplesChanged();
    offerUndo(`The example was ${SAID[status]}.`, then, async () => {
      const before = stateOf(segment);
      if (before === "live") await teachTogether(memory, pair, [segment.id, ...beside]);
      else if (before === "superseded" && beside.length) await teachTogether(memory, pair, beside);
      else await setStatus(memory, pair, segment.id, before === "superseded" ? "rejected" : before);
    });
    then();
  });
}

/** Lets a segment of the history teach again. */
export const restoreVersion = (memory, pair, id, then) =>
  attempt(async () => {
    const segment = await call("GET", addressOf(memory, pair, id));
    await changeStatus(memory, pair, segment, "approved", then);
  });

/** Removes an example, and offers to put it back. */
export function removeSegment(memory, pair, segment, then) {
  return attempt(async () => {
    const { beside } = await call("DELETE", addressOf(memory, pair, segment.id));
    await examplesChanged();
    offerUndo("The example was deleted.", then, async () => {
      const { source, target, unit, context, status } = segment;
      const example = { source, target, unit, context, pair };
      // One that was replaced must not take the place of others again.
      example.status = stateOf(segment) === "superseded" ? "rejected" : status;
      const added = await post(`/v1/memories/${memory.id}/segments`, example);
      if (stateOf(segment) === "live") await teachTogether(memory, pair, [added.id, ...beside]);
    });
    then();
  });
}

/** Gives an example other texts; then: called with the id to show, also after it was undone. */
export async function editSegment(memory, pair, segment, texts, then) {
  const saved = await call("PUT", addressOf(memory, pair, segment.id), texts);
  await examplesChanged();
  const said = "Saved. The next translation knows it.";
  if (saved.id === segment.id) notify(said);
  else
    offerUndo(
      said,
      () => then(segment.id),
      async () => {
        const { beside } = saved;
        if (stateOf(segment) === "live") return teachTogether(memory, pair, [segment.id, ...beside]);
        if (!beside.includes(saved.id)) await setStatus(memory, pair, saved.id, "rejected");
        if (stateOf(segment) !== "superseded") await setStatus(memory, pair, segment.id, segment.status);
        return teachTogether(memory, pair, beside);
      },
    );
  then(saved.id);
}

const setStatus = (memory, pair, id, status, beside = []) =>
  call("PUT", addressOf(memory, pair, id, "/status"), { status, beside });

/** All of them teach, none in the place of another: what taught before a change teaches again. */
async function teachTogether(memory, pair, ids) {
  for (const id of ids) await setStatus(memory, pair, id, "approved", ids);
}

function offerUndo(text, then, undo) {
  notify(text, [
    "Undo",
    () =>
      attempt(async () => {
        await undo();
        await examplesChanged();
        then();
      }),
  ]);
}
