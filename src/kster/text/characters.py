"""Characters that no text to be stored or written may hold."""

from __future__ import annotations

import re

# Control characters other than tab, line feed and carriage return, surrogates and noncharacters: XML 1.0
# cannot hold most of them. The regular expression engine reads the escapes: source files hold no surrogates.
UNUSABLE = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufdd0-\ufdef\ufffe\uffff]")


def printable(text: str) -> str:
    """`text` with U+FFFD in place of each character that no format here can hold."""
    return UNUSABLE.sub("\ufffd", text)
