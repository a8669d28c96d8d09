"""What one reader who is called "du" does, and what is told to readers: "öffnen" → "öffnest", "öffne"."""

from __future__ import annotations

import re
from functools import cache

from kster.text.imperatives import infinitives, irregular_orders

AUXILIARIES = {
    **{"sind": "bist", "haben": "hast", "werden": "wirst", "können": "kannst", "müssen": "musst"},
    **{"dürfen": "darfst", "sollen": "sollst", "wollen": "willst", "mögen": "magst", "wissen": "weißt"},
    **{"waren": "warst", "hatten": "hattest", "wurden": "wurdest", "wären": "wärst", "hätten": "hättest"},
    **{"würden": "würdest", "möchten": "möchtest", "könnten": "könntest", "konnten": "konntest"},
    **{"müssten": "müsstest", "mussten": "musstest", "dürften": "dürftest", "durften": "durftest"},
    **{"sollten": "solltest", "wollten": "wolltest"},
}
_UMLAUTS = {
    **{"fahren": "fährst", "fallen": "fällst", "fangen": "fängst", "graben": "gräbst", "halten": "hältst"},
    **{"laden": "lädst", "lassen": "lässt", "laufen": "läufst", "raten": "rätst", "schlafen": "schläfst"},
    **{
        "schlagen": "schlägst",
        "stoßen": "stößt",
        "tragen": "trägst",
        "wachsen": "wächst",
        "waschen": "wäschst",
    },
}
_WEAK = {"beauftragen", "beantragen", "veranlassen"}  # no "tragen", no "lassen"
_ALWAYS_WEAK = re.compile(".*(?:ier|ig|lich)en")
_PREFIXES = re.compile(
    "(?:ab|an|auf|aus|be|bei|dar|durch|ein|ent|er|fest|fort|frei|ge|her|herauf|heraus|herein|herunter|hin|hinauf"
    "|hinaus|hinein|hinunter|hinzu|hoch|los|mit|nach|raus|rein|über|um|unter|ver|vor|vorbei|weg|weiter|wieder|zer|zu"
    "|zurück|zusammen)*"
)

_CLAUSE = re.compile(r"(?:(?!\b(?:und|oder)\b)[^.,;:!?…–()\n])+")
_WORD = re.compile(r"[^\W\d_]+")
_SHORTEST = 3  # letters of a word that is no article or preposition
_CLOSE = 4  # words: how far apart nobody says a noun again
_SHORT = {"seien": "sei", "lassen": "lass", "gehen": "geh", "kommen": "komm", "tun": "tu"}
_KEPT = ("be", "ent", "er", "ge", "hinter", "über", "unter", "um", "ver", "zer")  # in orders, too


@cache
def form_of_du(form: str) -> str | None:
    """ "öffnen", "sind" → "öffnest", "bist"; None for a verb that is not known."""
    verb = form.lower()
    if verb in AUXILIARIES:
        return AUXILIARIES[verb]
    roots = [(verb[:at], verb[at:]) for at in range(len(verb)) if _PREFIXES.fullmatch(verb[:at])]
    for prefix, root in roots:
        if root in _UMLAUTS and verb not in _WEAK:
            return prefix + _UMLAUTS[root]
        if root in irregular_orders():
            return prefix + _with_st(irregular_orders()[root], joined=False)
        if prefix and root in ("haben", "werden"):
            return prefix + AUXILIARIES[root]
    if _ALWAYS_WEAK.fullmatch(verb) or any(root in infinitives() for _, root in roots):
        return _with_st(_stem(verb), joined=True)
    return None


@cache
def order_of(infinitive: str) -> str | None:
    """ "geben" → "gib"; None for a verb that is not known."""
    verb = infinitive.lower()
    if verb in _SHORT:
        return _SHORT[verb]
    for prefix in ("", *_KEPT):
        root = verb.removeprefix(prefix)
        if prefix + root == verb and root in irregular_orders():
            return prefix + irregular_orders()[root]
        if prefix + root == verb and (root in infinitives() or _ALWAYS_WEAK.fullmatch(verb)):
            return re.sub("el$", "l", _stem(verb)) + "e"
    return None


def says_twice(source: str, text: str) -> bool:
    """Whether a German translation says an order twice, or a noun in a row of words whose source repeats
    none: "mit einem Tuch reinigen Tuch abwischen"."""
    if repeats_order(text):
        return True
    words = [word.lower() for word in _WORD.findall(source) if len(word) > _SHORTEST]
    return len(set(words)) == len(words) and any(map(_repeats_noun, _CLAUSE.findall(text)))


def _repeats_noun(clause: str) -> bool:
    words = _WORD.findall(clause)
    return any(
        word[0].isupper() and len(word) > _SHORTEST and word in words[i + 1 : i + 1 + _CLOSE]
        for i, word in enumerate(words)
    )


def repeats_order(text: str) -> bool:
    """Whether a German text says an order in two ways at once: "Füllen Sie den Tank füllen"."""
    for clause in _CLAUSE.findall(text):
        words = _WORD.findall(clause)
        if len(words) > 2 and words[-1].islower():
            head, last = words[0].lower(), words[-1]
            if head == (last if words[1] == "Sie" else order_of(last)):
                return True
    return False


def _stem(infinitive: str) -> str:
    return re.sub("e?n$", "", infinitive)


def _with_st(stem: str, *, joined: bool) -> str:
    """joined: by an "e" where the stem needs one ("arbeitest")."""
    if re.search("(?:s|ß|x|z)$", stem):
        return stem + "t"
    return stem + ("est" if joined and re.search("[td]$|chn$|[^aeiouäöülrhmn][mn]$", stem) else "st")
