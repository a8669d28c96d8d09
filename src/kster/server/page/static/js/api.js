// Talking to the server.

import { currentKey } from "./key-store.js";
import { emit } from "./state.js";

/** The server said no. */
export class Refused extends Error {
  constructor(status, message) {
    super(message);
    this.status = status;
  }
}

/** The server did not say anything. */
export class Unreachable extends Error {
  constructor() {
    super("The server does not answer.");
  }
}

export const keyHeaders = () => (currentKey() ? { Authorization: `Bearer ${currentKey()}` } : {});

/** The answer's JSON; throws Refused or Unreachable. */
export async function call(method, path, body) {
  const response = await send(method, path, body);
  return response.json();
}

export const get = (path) => call("GET", path);
export const post = (path, body) => call("POST", path, body);

/** The response itself, for those who read it bit by bit. */
export async function send(method, path, body) {
  const headers = keyHeaders();
  if (body !== undefined) headers["Content-Type"] = "application/json";
  let response;
  try {
    response = await fetch(path, {
      method,
      headers,
      body: body === undefined ? undefined : JSON.stringify(body),
    });
  } catch {
    emit("lost");
    throw new Unreachable();
  }
  if (!response.ok) throw refusal(response.status, await response.json().catch(() => ({})));
  return response;
}

/** The error for an answer that is one. */
export function refusal(status, answer) {
  if (status === 401 || status === 403) emit("unauthorised");
  const said = answer.error ?? answer.message ?? `the server answered with status ${status}`;
  const id = answer.request_id ? ` (request ${answer.request_id})` : "";
  return new Refused(status, sentence(said) + id);
}

export const sentence = (text) =>
  text.charAt(0).toUpperCase() + text.slice(1) + (/[.!?…]$/.test(text) ? "" : ".");
