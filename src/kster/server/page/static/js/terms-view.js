// The terms of the chosen pair of languages: what every translation keeps. Added, removed, listed.

import { call, get, post } from "./api.js";
import { button, byId, element } from "./dom.js";
import { counted } from "./format.js";
import { attempt, notify } from "./notices.js";
import { emit, mayWrite, state } from "./state.js";

const LISTED = 1000;
let selected = { source: "", target: "" }; // what was marked in the text and its translation

/** Remembers what is marked, so that a word of the text and one of its translation can become a term. */
export function setUpTerms() {
  byId("add-term").addEventListener("click", () => {
    const text = byId("source-text");
    const marked = getSelection();
    const inTranslation = byId("adapted").contains(marked.anchorNode);
    selected = {
      source: text.value.slice(text.selectionStart, text.selectionEnd).trim(),
      target: inTranslation ? marked.toString().trim() : "",
    };
    location.hash = "#/terms";
  });
}

export async function termsView() {
  const pair = `${state.source}-${state.target}`;
  const bases = (await get("/v1/terms")).filter((base) => base.pair === pair);
  const lists = await Promise.all(bases.map((base) => get(`/v1/terms/${base.id}/terms?limit=${LISTED}`)));
  return {
    title: "Terms",
    body: [
      element("p", { class: "soft" }, `Kept in every translation ${pair.replace("-", " → ")}, in any form.`),
      mayWrite() ? newTermForm(pair, bases) : "",
      ...bases.map((base, at) => baseList(base, lists[at].terms)),
    ],
  };
}

function baseList(base, terms) {
  const line = (term) =>
    element(
      "tr",
      {},
      element("td", {}, term.source),
      element("td", {}, term.translate ? term.targets.join(", ") : "(not translated)"),
      element(
        "td",
        { class: "number" },
        base.changeable && button("Remove", () => remove(base, term), "quiet small"),
      ),
    );
  return element(
    "section",
    { class: "panel", "aria-label": base.name },
    element(
      "div",
      { class: "row" },
      element("h3", {}, base.name),
      element("span", { class: "gap" }),
      element("span", { class: "badge" }, base.automatic ? "automatic" : "on request"),
    ),
    terms.length
      ? element("table", { class: "facts-table" }, element("tbody", {}, terms.map(line)))
      : element("p", { class: "soft" }, "Empty"),
    element("p", { class: "soft tiny" }, counted(base.terms, "term")),
  );
}

async function remove(base, term) {
  await attempt(async () => {
    await call("DELETE", `/v1/terms/${base.id}/terms/${term.id}`);
    notify(`${term.source} is no longer a term.`);
    changed();
  });
}

/** Show the view again, and translate again. */
function changed() {
  dispatchEvent(new HashChangeEvent("hashchange"));
  emit("examples");
}

function newTermForm(pair, bases) {
  const field = (id, label, value) => {
    const input = element("input", { type: "text", id, maxlength: "200", required: true, autocomplete: "off" });
    input.value = value;
    return [input, element("div", { class: "field" }, element("label", { for: id }, label), input)];
  };
  const [source, sourceField] = field("term-source", "Source", selected.source);
  const [target, targetField] = field("term-target", "Must become", selected.target);
  const add = async (event) => {
    event.preventDefault();
    await attempt(async () => {
      const base =
        bases.find((each) => each.changeable) ?? (await post("/v1/terms", { name: "Terms", pair, automatic: true }));
      await post(`/v1/terms/${base.id}/terms`, { source: source.value, target: target.value });
      notify(`${source.value} becomes ${target.value} from now on.`);
      selected = { source: "", target: "" };
      changed();
    });
  };
  return element(
    "form",
    { class: "panel", submit: add },
    element("h3", {}, "A new term"),
    element(
      "div",
      { class: "row end" },
      sourceField,
      targetField,
      element("button", { class: "button strong" }, "Add"),
    ),
  );
}
