// The API's documentation, from /openapi.json.

import { byId, element } from "./dom.js";
import { parametersTable, schemaTable, withCode } from "./docs-tables.js";
import { tryForm } from "./docs-try.js";
import { setUpTheme } from "./theme.js";

const OWN_FIRST = ["translate", "memories", "jobs", "server"];

function show(api) {
  byId("about").textContent = `Version ${api.info.version}. ${api.info.description}`;
  const groups = Map.groupBy(operationsOf(api), (operation) => operation.tags[0]);
  const rank = (name) => (OWN_FIRST.includes(name) ? OWN_FIRST.indexOf(name) : OWN_FIRST.length);
  const names = [...groups.keys()].sort((one, other) => rank(one) - rank(other));
  byId("contents").replaceChildren(...names.map((name) => element("a", { href: `#${name}` }, titleOf(name))));
  byId("operations").replaceChildren(
    ...names.map((name) =>
      element(
        "section",
        { "aria-labelledby": name },
        element("h2", { id: name }, titleOf(name)),
        groups.get(name).map((operation) => details(operation, api)),
      ),
    ),
  );
}

const operationsOf = (api) =>
  Object.entries(api.paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) => ({
      path,
      method: method.toUpperCase(),
      ...operation,
    })),
  );

const titleOf = (name) => (OWN_FIRST.includes(name) ? `/v1: ${name}` : name);

/** Filled when it is opened. */
function details(operation, api) {
  const made = element(
    "details",
    { class: "operation" },
    element(
      "summary",
      {},
      element("span", { class: "verb" }, operation.method),
      element("span", { class: "path" }, operation.path),
      element("span", { class: "soft tiny" }, operation.summary ?? ""),
    ),
  );
  made.addEventListener("toggle", () => made.append(inside(operation, api)), { once: true });
  return made;
}

function inside(operation, api) {
  const [kind, body] = Object.entries(operation.requestBody?.content ?? {})[0] ?? [];
  return element(
    "div",
    { class: "inside" },
    operation.description && element("p", {}, withCode(operation.description)),
    operation.parameters?.length && parametersTable(operation.parameters),
    body && element("p", { class: "label" }, `Body: ${kind}`),
    body && schemaTable(body.schema, api),
    tryForm(operation, kind, body?.schema, api),
  );
}

setUpTheme();
show(await (await fetch("/openapi.json")).json());
