"""From "Sie" to "du": a German text said to its reader informally.

Pronouns are replaced, and the verbs that go with them take the form for one reader. Where the rules below do
not find out what a "Sie" is, or do not know its verb, the text is left alone: no form is guessed.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from itertools import pairwise

from kster.text.du_forms import AUXILIARIES, form_of_du, order_of
from kster.text.voice import is_mixed, lacks_verb, speaks_of_others, voices_in

Words = list[re.Match[str]]

_SENTENCE = re.compile(r"[^.!?…\n]+[.!?…]*")
_CLAUSE = re.compile(r"[^,;:–—()]+")
_WORD = re.compile(r"[^\W\d_]+(?:-[^\W\d_]+)*")
_AT_BEGINNING = re.compile(r"(?:^|[.!?…\n]\W*)(?:Sie|Ihre?[mnrs]?)\b")  # may be "they" or "her"

_SUBORDINATE = re.compile(
    r"(?:(?:und|oder|als|auch|in|an|auf|aus|bei|mit|nach|über|unter|von|vor|zu|für|durch) )?"
    "(?:wenn|falls|sobald|bevor|ehe|nachdem|während|damit|solange|sofern|sooft|ob|dass|weil|obwohl|bis|seit|seitdem"
    "|indem|wo|wohin|woher|wer|was|wie|warum|wann|womit|wodurch|worauf|welche[rnms]?|das|den|dem|die|der|denen"
    "|deren)",
    re.IGNORECASE,
)
_RELATIVE = re.compile("der|die|das|wer|was")
_PREPOSITION = re.compile("an|auf|durch|für|gegen|ohne|über|um|vor|hinter|neben")
_BEFORE_VERB = re.compile(  # what may stand before the verb of "… finden Sie": no subject
    "hier|dort|da|dann|danach|daraufhin|nun|jetzt|so|damit|dadurch|dazu|dabei|darin|daher|deshalb|anschließend"
    "|außerdem|alternativ|optional|vielleicht|möglicherweise|eventuell|standardmäßig|zudem|zusätzlich|zuerst"
    "|zunächst|später|heute|morgen|an|am|auf|aus|bei|beim|für|im|in|mit|nach|ohne|über|unter|vom|von|vor|zum|zur",
    re.IGNORECASE,
)
_BEFORE_ORDER = re.compile("bitte|dann|danach|anschließend|zuerst|zunächst|jetzt|nun|und|oder", re.IGNORECASE)
_JOINING = re.compile("und|oder")
_ASKING = re.compile("wie|wo|wohin|woher|was|warum|wann|womit|wodurch|worauf", re.IGNORECASE)
_ONE_DOES = re.compile("wird|kann|muss|soll|darf|will|hat|ist|mag|[a-zäöüß]{2,}t")
_NOUN_FOLLOWS = re.compile("den|die|das|dem|der|einen?|eine[mr]?|Ihre?[mnr]?|diese[nmrs]?|alle[ns]?|keine?n?")


def informal(text: str, source: str) -> str | None:
    """The text with "du" for "Sie"; None where the rules do not say how. source: what it translates."""
    if speaks_of_others(source) and not re.match(r"\W*your?\b", source, re.I) and _AT_BEGINNING.search(text):
        return None
    parts, cursor = [], 0
    for sentence in _SENTENCE.finditer(text):
        said = _Sentence(sentence[0], source).said()
        if said is None:
            return None
        parts += [text[cursor : sentence.start()], said]
        cursor = sentence.end()
    said = "".join(parts) + text[cursor:]
    is_good = "more" not in voices_in(said, source) and not is_mixed(said, source)
    return said if is_good and not lacks_verb(said, source) else None


class _Sentence:
    """One sentence, some of whose words are replaced."""

    def __init__(self, text: str, source: str) -> None:
        self.text = text
        self.asks = text.rstrip().endswith("?")
        self.new: dict[tuple[int, int], str] = {}  # begin and end of a stretch → what is said instead
        self.you = len(re.findall(r"\byou\b", source, re.IGNORECASE))
        self.subjects = 0  # "Sie" of which something is said, so far: not those that are told something

    def said(self) -> str | None:
        after_condition = False
        for number, clause in enumerate(_CLAUSE.finditer(self.text)):
            words = list(_WORD.finditer(self.text, clause.start(), clause.end()))
            if not self._replace(words, number == 0, after_condition):
                return None
            after_condition = number == 0 and _introduction(words) > 0
        parts, cursor = [], 0
        for (begin, end), word in sorted(self.new.items()):
            parts += [self.text[cursor:begin], word]
            cursor = end
        return "".join(parts) + self.text[cursor:]

    def _replace(self, words: Words, is_first: bool, after_condition: bool) -> bool:
        """Whether all that is formal in a clause could be replaced."""
        reader_acts = self.subjects > 0 and words[:1] and words[0][0] in ("um", "ohne", "statt")
        for at, word in enumerate(words):
            if word[0] == "Sie":
                acts = self._replace_sie(words, at, is_first, after_condition)
                if acts is None:
                    return False
                reader_acts = reader_acts or acts
            elif word[0] == "Ihnen":
                self._put(word, "dir")
            elif re.fullmatch("Ihre?[mnrs]?", word[0]):
                self._put(word, "dein" + word[0][3:])
            elif word[0] == "sich" and reader_acts:
                has_object = at + 1 < len(words) and _NOUN_FOLLOWS.fullmatch(words[at + 1][0])
                self._put(word, "dir" if has_object else "dich")
        return True

    def _replace_sie(self, words: Words, at: int, is_first: bool, after_condition: bool) -> bool | None:
        """Replace a "Sie" and its verb: whether it acts, or something is done to it; None if nobody knows."""
        before = [word[0] for word in words[:at]]
        by_us = "wir" in map(str.lower, before)
        previous = before[-1] if before else ""
        introduction = _introduction(words)
        if 0 < introduction == at:
            return self._subordinate(words, at)
        if previous.endswith("n") and not by_us:
            joined = at > 1 and _BEFORE_ORDER.fullmatch(before[-2])
            asks = self.asks or (
                at == 2 and _ASKING.fullmatch(before[0])
            )  # "Wie können Sie", without its mark
            states = asks or previous.lower() in AUXILIARIES or (after_condition and self.subjects < self.you)
            if not states and ((at == 1 and (is_first or not introduction)) or joined):
                return self._order(words, at)
            if at == 1 or joined or asks or previous == "finden" or _BEFORE_VERB.fullmatch(before[0]):
                return self._statement(words[at - 1], words[at], words[at + 1 :])
        if (at == 0 or _JOINING.fullmatch(previous)) and at + 1 < len(words) and form_of_du(words[at + 1][0]):
            return self._statement(words[at + 1], words[at], words[at + 2 :])
        if by_us or _PREPOSITION.fullmatch(previous):
            return self._object(words[at])
        if previous in ("als", "wie", "auch") or previous.endswith(("n", "sind")):
            return None
        return self._object(words[at]) if any(_ONE_DOES.fullmatch(word[0]) for word in words) else None

    def _object(self, sie: re.Match[str]) -> bool:
        self._put(sie, "dich")
        return False

    def _order(self, words: Words, at: int) -> bool | None:
        """ "Öffnen Sie …": the pronoun goes."""
        verb, sie = words[at - 1], words[at]
        order = order_of(verb[0])
        if order is None:
            return None
        self._put(verb, order)
        self.new[verb.end(), sie.end()] = ""
        self._put_joined(words[at + 1 :], order_of)
        return True

    def _statement(self, verb: re.Match[str], sie: re.Match[str], rest: Words) -> bool | None:
        """ "Sie öffnen …", "öffnen Sie …"."""
        form = form_of_du(verb[0])
        if form is None:
            return None
        self._put(verb, form)
        self._put(sie, "du")
        self.subjects += 1
        if verb[0].lower() not in AUXILIARIES:
            self._put_joined(rest, form_of_du)
        return True

    def _subordinate(self, words: Words, at: int) -> bool | None:
        """ "… wenn Sie … öffnen": the verb is the last word; without one, something is done to "Sie"."""
        last = words[-1]
        if _ONE_DOES.fullmatch(last[0]):
            return self._object(words[at]) if _RELATIVE.fullmatch(words[at - 1][0]) else None
        form = form_of_du(last[0])
        if form is None or last[0][0].isupper() or words[-2][0] == "zu":
            return None
        self._put(last, form)
        self._put(words[at], "du")
        self.subjects += 1
        if last[0] not in AUXILIARIES:  # "öffnen und speichern"
            for word, joining in pairwise(words):
                if _JOINING.fullmatch(joining[0]) and word[0].islower() and (one := form_of_du(word[0])):
                    self._put(word, one)
        return True

    def _put_joined(self, rest: Words, form: Callable[[str], str | None]) -> None:
        """Verbs without a "Sie" of their own: "… und speichern es"."""
        for joining, word, after in zip(rest, rest[1:], rest[2:], strict=False):
            if _JOINING.fullmatch(joining[0]) and word[0].islower() and after[0] != "Sie":
                self._put(word, form(word[0]) or word[0])

    def _put(self, word: re.Match[str], new: str) -> None:
        is_first = not any(map(str.isalpha, self.text[: word.start()]))
        self.new[word.span()] = new[0].upper() + new[1:] if is_first and word[0][0].isupper() else new


def _introduction(words: Words) -> int:
    """How many words introduce a subordinate clause; 0 if it is none."""
    for count in (2, 1):
        if len(words) > count and _SUBORDINATE.fullmatch(" ".join(word[0] for word in words[:count])):
            return count
    return 0
