"""What in a string is not language: placeholders, tags, entities, addresses, escapes, options of programs,
symbols.

    recognise("Save <b>%s</b>")  →  "Save ", <b>, %s, </b>

One table for every format, since a string seldom says where it comes from. It has printf's placeholders and
their relatives (C, Python, PHP, Objective-C, Ruby), Qt's %1 and %n, braces (Python, .NET, JavaScript, ICU,
templates), shells' $name, and Weblate's [X7X], which stands for a placeholder at character 7.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from kster.text.codes import OBJECT, Code, CodedText, Token
from kster.text.symbols import SYMBOL

_VOID = frozenset(
    "area base br bx col embed ex hr img input it link meta ph source track wbr x".split()  # noqa: SIM905
)
_NO_LANGUAGE = "code|kbd|pre|samp|script|style|var"  # elements whose content is none, where it is short

_ARGUMENT = r"(?:<[\w.-]+>|--?[\w-]*|\.\.\.)"

_FILES = (  # endings of files; not those that are names, too: Node.js, ASP.NET
    "bat|bin|bmp|cfg|conf|config|csv|css|dll|docx?|dmg|exe|gif|gz|html?|ini|jar|jpe?g|json|log|md|mp[34]|pdf|php"
    "|png|po|pptx?|ps1|py|rpm|rst|sh|sql|svg|tar|tgz|toml|tmx|tsv|txt|wav|xlf|xliff|xlsx?|xml|ya?ml|zip"
)
_SITES = "com|org|net|edu|gov|info|io|dev|eu|de|at|ch|uk|fr"  # where a word and a slash are an address

_KINDS = {
    "break": r"(?<!\\)(?:\\r)?\\n|(?<!\\)\\r(?![a-z]{2})|<br\s*/?>",  # not TeX's \\ref
    "element": rf"<(?P<name>{_NO_LANGUAGE})\b[^<>]*>"
    r"\s?[^<\s]{1,80}(?:\s[^<\s]{1,80}){0,3}\s?</(?P=name)>",
    # A program's arguments: [<file>...], [-f|--force], [--], and its options, which stand behind a space.
    "arguments": rf"\[{_ARGUMENT}(?:[|=\s]{_ARGUMENT})*\](?:\.\.\.)?",
    "option": r"(?<![^\s\"'“„‘‚(\[|=/,])--[A-Za-z][\w-]*\w|(?<![^\s\"'“„‘‚\[|=/,])-[A-Za-z](?![\w'’-])",
    "quoted": r"(?<![`\w])`[^`'\n]{1,80}`(?![`\w])",
    "tag": r"</?(?:[A-Za-z](?:[\w:.-]*)(?:\s[^<>]*|/)?|\d{1,3}\s?/?)>"
    r"|\[/?(?:b|i|u|s|url|img|size|color|font|quote|code|list)(?:=[^\]\n]{0,300})?\]",
    "comment": r"<!--.{0,300}?-->|<\?[^<>]{0,300}\?>|<%.{0,300}?%>|<!\[CDATA\[|\]\]>",
    "entity": r"&(?:\#\d{1,7}|\#[xX][0-9A-Fa-f]{1,6}|[A-Za-z][A-Za-z0-9]{1,31});",
    # The full stop at the end is the sentence's, not the address's.
    "address": r"(?:(?:https?|ftps?|sftp|file|ssh|git|svn|ldap|irc)://|mailto:|www\.(?=\w))"
    r"[^\s<>\"“”„«»{}|\\^`]*[\w/#=&%+~@$]"
    r"|(?<![\w.+-])[\w.+-]{1,64}@(?:[\w-]{1,63}\.){1,8}[A-Za-z]{2,24}\b"
    rf"|(?<![\w.@/-])(?:[a-z\d-]{{1,63}}\.){{1,8}}(?:{_SITES})/[^\s<>\"“”„«»{{}}|\\^`]*[\w/#=&%+~@$]",
    "file": r"(?<![\w.\\%])(?:[~.]?\.?/)?(?:[\w.-]{1,64}/){0,16}"
    rf"[\w.-]{{0,64}}\w\.(?:{_FILES})(?![\w/])(?!\.\w)",
    # Checksums, keys, numbers of things. Models leave out some of their characters.
    "identifier": r"(?<![\w-])(?:[\dA-Fa-f]{4,12}-){2,8}[\dA-Fa-f]{4,12}(?![\w-])"
    r"|(?<!\w)(?=[A-Za-z]*\d)(?=\d*[A-Za-z])[A-Za-z\d]{14,512}(?!\w)",
    "path": r"(?<!\w)(?:[A-Za-z]:\\|\\\\(?=[\w.-]+\\))(?:[^\s\"'<>|*?]*[^\s\"'<>|*?.,;:!)])?",
    # Models write "<" for other backslashes.
    "escape": r"\\(?:u[0-9A-Fa-f]{4}|x[0-9A-Fa-f]{2}|[\\tbfav0\"'])"
    r"|(?<!\w)\\(?:[A-Za-z]{2,}|(?=\s|$))",
    "weblate": r"\[X\d+X\]|\[\[[^\[\]\n]{1,200}\]\]",
    "braces": r"'[{}]'|\{\{\{[^{}\n]{0,200}\}\}\}|\$?\{\{[^{}\n]{0,200}\}\}|\{%[^{}\n]{0,200}%\}"
    r"|\#?\$\{[^{}\n]{0,200}\}"
    r"|[%\#]\{[^{}\n]{0,200}\}"
    r"|\{\s*[\w$@.\#\[\]'\"()/-]{0,100}\s*(?:[!:,|?][^{}\n]{0,200})?\}",
    "colon": r"(?<![^\s\"'(\[]):[A-Za-z_]\w*(?::(?!\w))?",  # Laravel's, and :smile:
    "dollar": r"\$\[\w+\]|\$\(\w+\)|\$[A-Za-z_]\w*\$?|\b__\w+?__\b|(?<!\w)@[A-Za-z_]\w*@?",
    "percent": r"%%"
    r"|%\#?@(?:\w+@)?|%\d+\$@"
    r"|%\((?:\w[\w. -]{0,60})\)(?:[-+\#0]*\d*(?:\.\d+)?(?:[hlL](?=[a-zA-Z]\b))?[diouxXeEfFgGcrsa])?"
    r"|(?<!\d)%(?:<(?!\w+>)|>)"  # GCC's quotes
    r"|%<\w+>[-+\#0]*\d*(?:\.\d+)?[dfsx]?"
    r"|%[A-Za-z_]\w{2,}%(?!\w)"
    # With a precision or a width given elsewhere nothing else can be meant, whatever follows: %.1fGB.
    r"|%(?:\d+\$)?[-+\#0']*(?:\*|\d*(?=\.))(?:\.(?:\*|\d+))?(?:hh|h|ll|l|L|z|j|t|q|I64)?[diouxXeEfFgGaAcCsSpn]"
    r"|%L?\d+(?!\d|\$|\.\d|[diouxXeEfFgGcs]\b)"  # Qt
    r"|%(?:\d+\$)?[-+\#0']*(?:\*|\d+)?(?:\.(?:\*|\d+))?(?:hh|h|ll|l|L|z|j|t|q|I64)?[diouxXeEfFgGaAcCsSpn]"
    r"(?![A-Za-z])"
    r"|(?<!\d)%(?!ig(?:e[mnrs]?)?\b)[A-Za-z]\w*",  # not German: 100 %ig
    "object": OBJECT,
    "symbol": SYMBOL,
}
_CODE = re.compile("|".join(f"(?P<{kind}>{pattern})" for kind, pattern in _KINDS.items()), re.S)
# Without one of these there is no code.
_HINT = re.compile(
    rf"[<>\[&\\%{{$#@_`{OBJECT}]|://|mailto:|www\.|(?<!\w)-[-A-Za-z]|(?<!\w):[A-Za-z_]|\w\.[a-z]|\w{{14}}|\w-\w+-\w|{SYMBOL}"
)
_TAG = re.compile(r"[<\[](?P<end>/?)(?P<name>[\w:.-]+).*?(?P<empty>/?)[>\]]", re.S)


def recognise(text: str) -> CodedText:
    """A string with its codes. Tags that belong together are pairs; half a pair stands alone."""
    return with_codes([text])


def with_codes(tokens: Iterable[Token], also: re.Pattern[str] | None = None) -> CodedText:
    """Texts and codes, with the codes that are recognised in the texts in addition.

    also: matches what else is one, in this text: words of another script.
    """
    found: list[Token] = []
    for token in tokens:
        if not isinstance(token, str):
            found.append(token)
            continue
        for part in _paired(list(_split(token))):
            found += _matched(part, also) if isinstance(part, str) and also is not None else [part]
    return CodedText.of(found)


def _matched(text: str, pattern: re.Pattern[str]) -> Iterator[Token]:
    at = 0
    for match in pattern.finditer(text):
        yield from filter(None, [text[at : match.start()]])
        yield Code("alone", match[0])
        at = match.end()
    yield from filter(None, [text[at:]])


def are_kept(source: str, translation: str) -> bool:
    """Whether a translation has the codes of its source, in whatever order."""
    return sorted(map(str, _codes(source))) == sorted(map(str, _codes(translation)))


def code_spans(text: str) -> Iterator[tuple[str, int, int]]:
    """Each code in a string: its kind (a key of the table above), where it begins and where it ends."""
    for match in _matches(text):
        yield match.lastgroup or "", match.start(), match.end()


def _matches(text: str) -> Iterator[re.Match[str]]:
    return _CODE.finditer(text) if _HINT.search(text) else iter(())


def _codes(text: str) -> list[Code]:
    return [code for _, code in recognise(text).codes]


def _split(text: str) -> Iterator[Token]:
    at = 0
    for match in _matches(text):
        if match.start() > at:
            yield text[at : match.start()]
        yield Code("alone", match[0], breaks=match.lastgroup == "break")
        at = match.end()
    if at < len(text):
        yield text[at:]


def _paired(tokens: list[Token]) -> list[Token]:
    """With tags as pairs, where they are nested as they should be."""
    around: list[tuple[str, int]] = []  # the names of open elements and where they are
    for i, token in enumerate(tokens):
        if isinstance(token, str) or token.breaks or not (tag := _TAG.fullmatch(token.data)):
            continue
        name = tag["name"].lower()
        if not tag["end"]:
            if not tag["empty"] and name not in _VOID:
                around.append((name, i))
        elif any(name == other for other, _ in around):
            while around:
                other, begin = around.pop()
                if other == name:
                    pair = object()
                    tokens[begin] = Code("open", str(tokens[begin]), pair)
                    tokens[i] = Code("close", token.data, pair)
                    break
    return tokens
