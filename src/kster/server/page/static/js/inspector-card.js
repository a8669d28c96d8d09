// What the card about a word says: how much the memory had to say, and which examples spoke.

import { byId, element } from "./dom.js";
import { figure, share } from "./format.js";

const FAINT = 0.005; // an example that weighs less is not worth a line

/** The first piece whose weight is about the word's: there the word was chosen. */
export const decisivePiece = (word) =>
  word.tokens.findIndex((token) => token.mixing_weight > word.mixing_weight - 0.1);

/** chosen: of the word's pieces; choose: called with another; close: ends it. */
export function cardContent(word, chosen, choose, close) {
  const token = word.tokens[chosen];
  const say = element("div", { class: "say", "aria-hidden": "true" }, element("span"));
  say.firstChild.style.setProperty("--weight", token.mixing_weight);
  return [
    element(
      "header",
      {},
      element("h2", {}, word.text),
      element(
        "button",
        { type: "button", class: "button quiet close", "aria-label": "Close", click: close },
        "✕",
      ),
    ),
    say,
    element("p", { class: "verdict" }, verdict(token)),
    element(
      "dl",
      { class: "figures" },
      fact("Mixing weight λ", figure(token.mixing_weight)),
      fact("Bandwidth σ", figure(token.bandwidth)),
      fact("Base p", share(token.base_probability)),
      fact("Adapted p", share(token.probability)),
    ),
    word.tokens.length > 1 ? pieces(word, chosen, choose) : "",
    element("h3", {}, token.examples.length ? "Examples it looked at" : "No examples were looked at"),
    element(
      "ul",
      { class: "examples" },
      token.examples
        .filter((example, at) => at === 0 || example.weight > FAINT)
        .map((example) => exampleLine(example, token, word.text)),
    ),
  ];
}

function verdict(token) {
  if (!token.examples.length) return "The base model alone decided this.";
  const weight = token.mixing_weight;
  if (weight > 0.66) return "The memory decided this.";
  if (weight > 0.33) return "Memory and base model decided this together.";
  return weight > 0.05
    ? "Mostly the base model decided this."
    : "The base model decided this; the memory had nothing fitting.";
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

function exampleLine(example, token, word) {
  const { memory } = example;
  const weight = element(
    "span",
    { class: "weight" },
    element("span", { class: "unseen" }, "Kernel weight "),
    share(example.weight),
  );
  weight.style.setProperty("--weight", example.weight);
  const content = [
    weight,
    element(
      "span",
      {},
      element("span", { class: "target", lang: byId("adapted").lang }, marked(example.target, word)),
      element("br"),
      element("span", { class: "origin-text", lang: byId("source-text").lang }, example.source),
      element("br"),
      element(
        "span",
        { class: "facts" },
        "said ",
        element("b", {}, `“${plain(example.token)}”`),
        example.token === token.token ? " as here" : "",
        ` · distance ${figure(example.distance, 1)}`,
        memory ? ` · ${memory.name}` : "",
      ),
    ),
  ];
  if (!memory) return element("li", { class: "example" }, content);
  const href = `#/memory/${memory.id}/${memory.pair}/${example.segment}`;
  return element("li", {}, element("a", { class: "example", href }, content));
}
