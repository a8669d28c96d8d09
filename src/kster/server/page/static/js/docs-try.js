// Trying a call out, with the key that the page was given.

import { element } from "./dom.js";
import { resolved } from "./docs-tables.js";
import { currentKey } from "./key-store.js";

/** A form for a call, or null for bodies that are not JSON. */
export function tryForm(operation, kind, schema, api) {
  if (kind && kind !== "application/json") return null;
  const name = `${operation.method}${operation.path}`;
  const inputs = (operation.parameters ?? []).map((each) => ({
    ...each,
    input: element("input", {
      type: "text",
      id: `${name}-${each.name}`,
      required: each.required,
      autocomplete: "off",
    }),
  }));
  const body = schema && element("textarea", { class: "body-text", id: `${name}-body`, spellcheck: "false" });
  if (body) body.value = JSON.stringify(exampleOf(schema, api), null, 2);
  const answer = element("pre", {
    tabindex: "0",
    role: "region",
    "aria-label": "Answer",
    "aria-live": "polite",
    hidden: true,
  });

  const send = async (event) => {
    event.preventDefault();
    const headers = currentKey() ? { Authorization: `Bearer ${currentKey()}` } : {};
    if (body) headers["Content-Type"] = "application/json";
    try {
      const response = await fetch(addressOf(operation.path, inputs), {
        method: operation.method,
        headers,
        body: body?.value,
      });
      answer.textContent = `${response.status} ${response.statusText}\n\n${pretty(await response.text())}`;
    } catch {
      answer.textContent = "The server does not answer.";
    }
    answer.hidden = false;
  };
  return element(
    "form",
    { class: "stack", submit: send },
    inputs.length
      ? element(
          "div",
          { class: "row" },
          inputs.map(({ name: label, input }) =>
            element("div", { class: "field" }, element("label", { for: input.id }, label), input),
          ),
        )
      : "",
    body && element("label", { for: body.id }, "Body"),
    body,
    element("div", {}, element("button", { class: "button" }, `Try ${operation.method}`)),
    answer,
  );
}

function addressOf(path, inputs) {
  const query = new URLSearchParams();
  let address = path;
  for (const { name, in: place, input } of inputs) {
    if (place === "path") address = address.replace(`{${name}}`, encodeURIComponent(input.value));
    else if (input.value) query.append(name, input.value);
  }
  return query.size ? `${address}?${query}` : address;
}

/** The required fields of a body, with something to replace. */
function exampleOf(schema, api) {
  const { properties = {}, required = [] } = resolved(schema, api);
  return Object.fromEntries(
    required.map((name) => {
      const type = resolved(properties[name], api).type;
      return [name, { integer: 0, number: 0, boolean: false, array: [] }[type] ?? ""];
    }),
  );
}

function pretty(text) {
  try {
    return JSON.stringify(JSON.parse(text), null, 2);
  } catch {
    return text;
  }
}
