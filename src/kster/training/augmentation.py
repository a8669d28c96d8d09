"""Pairs made of pairs, with something in them that must be copied: customers have much of it, corpora little.

A word that stands once on both sides as it is (a number, a name) is where a placeholder, an address or a file
name can stand as well; list marks, capitals, titles and printers' typography fit any pair.
"""

from __future__ import annotations

import random
import re
from collections import Counter
from collections.abc import Callable

Pair = tuple[str, str]

# Opening and closing quotation marks by language, the usual ones first.
QUOTES = {
    "de": (("„", "“"), ("»", "«"), ("‚", "‘")),
    "fr": (("«\u00a0", "\u00a0»"), ("“", "”")),
    "en": (("“", "”"), ("‘", "’")),
}
_listed = str.split
_NAMES = _listed("name count user file title date path url size id key value folder page group version")
_WORDS = _listed("invoice report backup photo setup readme notes budget index config data export summary")
_ENDINGS = _listed("pdf docx txt xlsx zip png jpg json xml csv log md exe iso html tar.gz")
_DOMAINS = _listed("example.com example.org mail.example.net support.example.de acme.example my-shop.example")
_PEOPLE = _listed("anna.keller jsmith info sales support m.huber office lea_w no-reply t.brown")
_UNITS = _listed("kg g mg km m cm mm l ml h min s ms V W kW A Hz MHz GB MB KB TB px °C %")
_TAGS = ("b", "i", "strong", "em", "code", "u", "span", "kbd", "a")
_MARKS = ("- ", "– ", "• ", "* ", "{}. ", "{}) ", "({}) ", "§ {} ", "{}.{} ", "[{}] ")
_EDGES = ".,;:!?()[]\"'„“”‚‘’»«…"


class Augmenter:
    """Makes other pairs; the same ones whenever it is made anew and asked in the same order."""

    def __init__(self, languages: tuple[str, str], seed: int = 0) -> None:
        self.languages = languages
        self.dice = random.Random(seed)
        self._ways: list[Callable[[Pair], Pair | None]] = [
            *[self._with_item] * 4,
            *[self._with_tags] * 2,
            self._with_mark,
            self._with_ending,
            self._in_capitals,
            self._as_title,
            *[self._typeset] * 2,
        ]

    def changed(self, pair: Pair) -> Pair | None:
        """The pair with something in it that must be copied; None where nothing fits."""
        for way in self.dice.sample(self._ways, 3):
            made = way(pair)
            if made is not None and made != pair:
                return made
        return None

    def item(self) -> str:
        """Something that a translation has to keep as it is."""
        make = self.dice.choice((self._placeholder, self._address, self._file, self._number, self._code))
        return make()

    def _placeholder(self) -> str:
        name, digit = self.dice.choice(_NAMES), self.dice.randrange(1, 10)
        counted = (f"{{{digit - 1}}}", "%s", "%d", f"%{digit}", f"%{digit}$s", "{}", "%@", "%i")
        named = (
            f"%({name})s",
            f"%({name})d",
            f"{{{name}}}",
            f"{{{{ {name} }}}}",
            f"${{{name}}}",
            f"[{name}]",
        )
        return self.dice.choice(self.dice.choice((counted, named)))

    def _address(self) -> str:
        domain, word = self.dice.choice(_DOMAINS), self.dice.choice(_WORDS)
        site = f"https://{self.dice.choice(('www.', ''))}{domain}"
        return self.dice.choice((f"{self.dice.choice(_PEOPLE)}@{domain}", site, f"{site}/{word}", domain))

    def _file(self) -> str:
        word = self.dice.choice(_WORDS)
        name = self.dice.choice(
            (word, word.capitalize(), f"{word}-{self.dice.randrange(100)}", f"{word}_final")
        )
        file = f"{name}.{self.dice.choice(_ENDINGS)}"
        return self.dice.choice(
            (file, file, f"/var/{word}/{file}", f"C:\\{word.capitalize()}\\{file}", f"--{word}")
        )

    def _code(self) -> str:
        letters = "".join(self.dice.choices("ABCDEFGHKLMNPRSTUVWXZ", k=self.dice.randrange(2, 5)))
        version = ".".join(str(self.dice.randrange(20)) for _ in range(3))
        return self.dice.choice(
            (f"{letters}-{self.dice.randrange(10**5)}", f"{letters}{self.dice.randrange(100)}", version)
        )

    def _number(self) -> str:
        digits = str(self.dice.randrange(10 ** self.dice.randrange(1, 8)))
        return self.dice.choice((digits, f"{digits}\u00a0{self.dice.choice(_UNITS)}"))

    def _with_item(self, pair: Pair) -> Pair | None:
        """Another thing where a word stood that both sides share."""
        return self._replaced(pair, lambda word: self.item())

    def _with_tags(self, pair: Pair) -> Pair | None:
        """Tags around a word that both sides share, or around everything."""
        tag = self.dice.choice(_TAGS)
        start = f'<{tag} href="{self.item()}">' if tag == "a" else f"<{tag}>"
        if self.dice.random() < 0.3:
            return f"{start}{pair[0]}</{tag}>", f"{start}{pair[1]}</{tag}>"
        return self._replaced(pair, lambda word: f"{start}{word}</{tag}>")

    def _replaced(self, pair: Pair, change: Callable[[str], str]) -> Pair | None:
        shared = shared_words(*pair)
        if not shared:
            return None
        word = self.dice.choice(shared)
        new = change(word)
        source, target = (re.sub(rf"(?<!\w){re.escape(word)}(?!\w)", lambda _: new, text) for text in pair)
        return source, target

    def _with_mark(self, pair: Pair) -> Pair:
        """As an item of a list."""
        mark = self.dice.choice(_MARKS)
        letters = self.dice.choice((str(self.dice.randrange(1, 30)), self.dice.choice("abcdefABC")))
        mark = mark.format(letters, self.dice.randrange(1, 10))
        return mark + pair[0], mark + pair[1]

    def _with_ending(self, pair: Pair) -> Pair:
        """With something after a colon or in brackets."""
        form = self.dice.choice((": {}", " ({})", " – {}", " {}"))
        ending = form.replace("{}", self.item())
        return pair[0].rstrip(".!?…: ") + ending, pair[1].rstrip(".!?…: ") + ending

    def _in_capitals(self, pair: Pair) -> Pair | None:
        if len(pair[0]) > 80 or re.search(r"[{}<>%@/\\]", "".join(pair)):
            return None
        return pair[0].upper(), pair[1].upper()

    def _as_title(self, pair: Pair) -> Pair | None:
        """Without the full stop, and in English With Capitals Like These."""
        if len(pair[0].split()) > 9:
            return None
        titles = [
            " ".join(
                w[:1].upper() + w[1:] if len(w) > 3 or i == 0 else w for i, w in enumerate(text.split(" "))
            )
            if language == "en"
            else text
            for text, language in zip((t.rstrip(". ") for t in pair), self.languages, strict=True)
        ]
        return titles[0], titles[1]

    def _typeset(self, pair: Pair) -> Pair:
        """With the quotation marks, dashes and spaces of printed text."""
        source, target = (
            self._printed(text, language) for text, language in zip(pair, self.languages, strict=True)
        )
        return source, target

    def _printed(self, text: str, language: str) -> str:
        choices = QUOTES.get(language, (("“", "”"),))
        opening, closing = choices[0] if self.dice.random() < 0.7 else self.dice.choice(choices)
        text = re.sub(r'"([^"]+)"', lambda quoted: f"{opening}{quoted[1]}{closing}", text)
        text = text.replace("...", "…").replace(" - ", " – ")
        text = re.sub(r"(?<=\w)'(?=\w|\s|$)", "’", text)
        return re.sub(rf"(\d) (?=({'|'.join(map(re.escape, _UNITS))})(?!\w))", "\\1\u00a0", text)


def shared_words(source: str, target: str) -> list[str]:
    """Numbers and names that stand exactly once, and alike, on both sides; a first word may be any word."""
    counts = [Counter(word.strip(_EDGES) for word in text.split()) for text in (source, target)]
    first = source.split(maxsplit=1)[0].strip(_EDGES)
    once = [word for word, count in counts[0].items() if count == 1 and counts[1][word] == 1]
    return [word for word in once if re.fullmatch(r"[A-Z]\w\w+|\d[\d.,]*\d|\d", word) and word != first]
