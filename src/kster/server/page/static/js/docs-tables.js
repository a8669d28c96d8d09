// Parameters and bodies of the API as tables.

import { element } from "./dom.js";

/** Follows references, and takes of "this or null" the former. */
export function resolved(schema, api) {
  if (schema.$ref)
    return resolved(
      schema.$ref
        .split("/")
        .slice(1)
        .reduce((at, name) => at[name], api),
      api,
    );
  const choices = (schema.anyOf ?? schema.oneOf ?? []).filter((choice) => choice.type !== "null");
  if (choices.length === 1) return { ...resolved(choices[0], api), description: schema.description };
  return schema;
}

export const parametersTable = (parameters) =>
  table(
    ["Parameter", "In", "Type", ""],
    parameters.map((each) => [
      code(each.name, each.required),
      each.in,
      typeOf(each.schema),
      withCode(each.description ?? ""),
    ]),
  );

export function schemaTable(schema, api) {
  const { properties = {}, required = [] } = resolved(schema, api);
  return table(
    ["Field", "Type", ""],
    Object.entries(properties).map(([name, each]) => [
      code(name, required.includes(name)),
      typeOf(each),
      withCode(each.description ?? ""),
    ]),
  );
}

/** A text in which `this` is code. */
export const withCode = (text) =>
  text.split("`").map((part, at) => (at % 2 ? element("code", {}, part) : part));

export function typeOf(schema) {
  if (schema.enum) return schema.enum.join(" | ");
  const choices = schema.anyOf ?? schema.oneOf;
  if (choices) return choices.map(typeOf).join(" | ");
  return schema.type === "array" ? `[${typeOf(schema.items ?? {})}]` : (schema.type ?? "object");
}

const code = (name, required) =>
  element(
    "span",
    {},
    element("code", {}, name),
    required ? element("span", { class: "soft tiny" }, " needed") : "",
  );

function table(heads, rows) {
  return element(
    "div",
    { class: "scroll" },
    element(
      "table",
      { class: "facts-table" },
      element(
        "thead",
        {},
        element(
          "tr",
          {},
          heads.map((head) => element("th", { scope: "col" }, head)),
        ),
      ),
      element(
        "tbody",
        {},
        rows.map((row) =>
          element(
            "tr",
            {},
            row.map((cell) => element("td", {}, cell)),
          ),
        ),
      ),
    ),
  );
}
