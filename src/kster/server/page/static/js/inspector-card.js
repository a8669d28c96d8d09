// What the card about a word says: first which examples taught it, then the figures behind that.

import { byId, element } from "./dom.js";
import { figure, share } from "./format.js";
import { weightOf } from "./words.js";

/** The first piece whose weight is about the word's: there the word was chosen. */
export const decisivePiece = (word) =>
  word.tokens.findIndex((token) => token.mixing_weight > word.mixing_weight - 0.1);

export const closeButton = (close) =>
  element("button", { type: "button", class: "button quiet close", "aria-label": "Close", click: close }, "✕");

/** A few words on pointing at a word; key: what opens its card. */
export function hintFor(word, key) {
  if (word.tokens) return `${verdict(word)} ${key} shows more.`;
  return `${word.changed ? "Changed by the memory. " : ""}${key} shows what taught it.`;
}

/** chosen: of the word's pieces; choose: called with another; close: ends it; detailed: unfold the figures. */
export function cardContent(word, chosen, choose, close, detailed) {
  const taught = word.taught ? [{ ...word.taught, share: 1 }] : word.segments; // one if it was taken over whole
  const say = element("div", { class: "say", "aria-hidden": "true" }, element("span"));
  say.firstChild.style.setProperty("--weight", weightOf(word));
  return [
    element("header", {}, element("h2", {}, word.text), closeButton(close)),
    say,
    element("p", { class: "verdict" }, verdict(word)),
    taught.length ? element("h3", {}, taught.length > 1 ? "Taught by these examples" : "Taught by") : "",
    element(
      "ul",
      { class: "examples taught" },
      taught.map((segment) =>
        exampleLine(segment, word.text, segment.share, "Share ", [segment.memory?.name ?? ""]),
      ),
    ),
    element(
      "details",
      { class: "behind", open: detailed },
      element("summary", {}, "Details"),
      ...details(word, word.tokens[chosen], chosen, choose),
    ),
  ];
}

function verdict({ taught, tokens, mixing_weight: weight }) {
  if (taught) return "An example taught this word.";
  if (!tokens.some((token) => token.examples.length)) return "The base model alone decided this.";
  if (weight > 0.66) return "The memory decided this.";
  if (weight > 0.33) return "Memory and base model decided this together.";
  return weight > 0.05
    ? "Mostly the base model decided this."
    : "The base model decided this; the memory had nothing fitting.";
}

/** Of one piece: what was mixed, and all examples that were looked at. */
function details(word, token, chosen, choose) {
  return [
    word.tokens.length > 1 ? pieces(word, chosen, choose) : "",
    element(
      "dl",
      { class: "figures" },
      fact("Mixing weight λ", figure(token.mixing_weight)),
      fact("Bandwidth σ", figure(token.bandwidth)),
      fact("Base p", share(token.base_probability)),
      fact("Adapted p", share(token.probability)),
    ),
    element("h3", {}, token.examples.length ? "Examples it looked at" : "No examples were looked at"),
    element(
      "ul",
      { class: "examples" },
      token.examples.map((example) =>
        exampleLine(example, word.text, example.weight, "Kernel weight ", [
          "said ",
          element("b", {}, `“${plain(example.token)}”`),
          example.token === token.token ? " as here" : "",
          ` · distance ${figure(example.distance, 1)}`,
          example.memory ? ` · ${example.memory.name}` : "",
        ]),
      ),
    ),
  ];
}

const fact = (name, value) => element("div", {}, element("dt", {}, name), element("dd", {}, value));

/** The text, with the word marked where it has it, perhaps with another ending. */
function marked(text, word) {
  const shortest = word.length < 4 ? word.length : Math.max(4, Math.ceil(0.7 * word.length));
  for (let length = word.length; length >= shortest; length -= 1) {
    const at = text.toLowerCase().indexOf(word.slice(0, length).toLowerCase());
    if (at >= 0)
      return [text.slice(0, at), element("mark", {}, text.slice(at, at + length)), text.slice(at + length)];
  }
  return [text];
}

const plain = (token) => token.replaceAll("▁", "").replace("</s>", "(end)") || "␣";

/** A word may be made of several pieces, each decided for itself. */
function pieces(word, chosen, choose) {
  return element(
    "div",
    { class: "pieces", role: "group", "aria-label": "Pieces of this word" },
    word.tokens.map((token, at) =>
      element(
        "button",
        {
          type: "button",
          class: "button small",
          "aria-pressed": String(at === chosen),
          click: () => choose(at),
        },
        plain(token.token),
      ),
    ),
  );
}

/** A segment with its weight (and what that is, for those who do not see it), and facts in a line of their own. */
function exampleLine({ memory, segment, source, target }, word, value, meaning, facts) {
  const weight = element(
    "span",
    { class: "weight" },
    element("span", { class: "unseen" }, meaning),
    share(value),
  );
  weight.style.setProperty("--weight", value);
  const content = [
    weight,
    element(
      "span",
      {},
      element("span", { class: "target", lang: byId("adapted").lang }, marked(target, word)),
      element("br"),
      element("span", { class: "origin-text", lang: byId("source-text").lang }, source),
      element("br"),
      element("span", { class: "facts" }, facts),
    ),
  ];
  if (!memory) return element("li", { class: "example" }, content);
  const href = `#/memory/${memory.id}/${memory.pair}/${segment}`;
  return element("li", {}, element("a", { class: "example", href }, content));
}
