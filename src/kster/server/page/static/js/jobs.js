// Following imports and fits while they run.

import { call, get, send } from "./api.js";
import { element } from "./dom.js";
import { attempt } from "./notices.js";

const PAUSE = 1500; // milliseconds before looking again after the connection broke

export const isOver = (job) => ["done", "failed", "cancelled"].includes(job.state);

/** A button that gives a job up. */
export const cancelButton = (job) =>
  element(
    "button",
    {
      type: "button",
      class: "button small",
      click: ({ currentTarget }) => {
        currentTarget.disabled = true;
        attempt(() => call("DELETE", `/v1/jobs/${job.id}`));
      },
    },
    job.kind === "fit" ? "Cancel the fit" : "Cancel the import",
  );

/** Calls `changed` with the job at every change; returns it when it is over. */
export async function followJob(job, changed) {
  let now = job;
  changed(now);
  while (!isOver(now)) {
    try {
      for await (const event of eventsOf(job.id)) changed((now = event));
    } catch {
      await new Promise((resolve) => setTimeout(resolve, PAUSE));
    }
    if (!isOver(now)) now = await get(`/v1/jobs/${job.id}`).catch(() => now);
  }
  changed(now);
  return now;
}

/** Server-sent events, read with fetch: EventSource cannot send the key in a header. */
async function* eventsOf(id) {
  const response = await send("GET", `/v1/jobs/${id}/events`);
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let text = "";
  for (;;) {
    const { value, done } = await reader.read();
    if (done) return;
    text += value;
    const events = text.split("\n\n");
    text = events.pop();
    for (const event of events)
      if (event.startsWith("data: ")) yield JSON.parse(event.slice("data: ".length));
  }
}
