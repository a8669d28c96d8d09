// A long text in parts, which are translated one after the other.

const ONE_PIECE = 600; // characters: so much is translated at once, with all its examples
const ENOUGH = 240; // characters of a part: a few sentences

// Lines end anywhere. In a line a sentence ends surely enough after a mark and before a capital, unless the word
// before a full stop is short enough to be an abbreviation. The server finds the other sentences by itself.
const BREAKS = /\s*\n\s*|(?<=(?:\p{Ll}{5}\.|[!?…])["'”’“»)\]]*)\s+(?=["'„“«(]?\p{Lu})|(?<=[。！？])/gu;

/** [{before, text}]: what stands before each part (spaces, line breaks) is not translated; nothing is lost. */
export function partsOf(text) {
  if (text.length <= ONE_PIECE) return [{ before: "", text }];
  const parts = [];
  let before = text.match(/^\s*/)[0];
  let start = before.length;
  const end = text.trimEnd().length;
  for (const found of text.matchAll(BREAKS)) {
    if (found.index - start < ENOUGH || found.index >= end) continue;
    parts.push({ before, text: text.slice(start, found.index) });
    [before] = found;
    start = found.index + before.length;
  }
  if (start < end) parts.push({ before, text: text.slice(start, end) });
  return parts;
}
