"""A file of each kind that localisation teams have, as their tools write it, and its units."""

from __future__ import annotations

MARKDOWN = """---
title: Not this
---

# Getting *started*

This is a paragraph that was wrapped by its author at
some column, with **bold words**, `code here`, and a
[link to the manual](https://example.org/a_(b) "title").

- [ ] Press the `F1` key now or <b>not</b>
- Second item with ![A picture](a.png)
1. Number one
2. 1

> Quoted text that is also wrapped by somebody who
> quoted it.

| Name | What it does |
|------|--------------|
| `-v` | Say more     |

```python
print("words")
```

    indented code words

Line one\\
line two with \\*stars\\* &amp; <https://example.org> and [ref][1] snake_case.

<div>html block words</div>

[1]: http://example.org "Words"
"""
I18NEXT = """{
  "$schema": "./schema.json",
  "menu": { "open": "Open “it”", "count_one": "{{count}} file", "count_other": "{{count}} files" },
  "list": ["First", 2, true, null, "\\u00e4\\t\\"Second\\""],
  "nested": "See $t(menu.open, {\\"a\\": 1}) now", "version": "1.0"
}
"""
CHROME = """{
  "greeting": {
    "message": "Hello, $USER$!",
    "description": "Words for the translator.",
    "placeholders": { "user": { "content": "$1", "example": "Ada" } }
  },
  "bye": { "message": "Goodbye" }
}
"""
ARB = """{
  "@@locale": "en",
  "inbox": "{count, plural, =0{No messages} one{One message} other{{count} messages}}",
  "@inbox": { "description": "How many messages", "placeholders": { "count": { "type": "int" } } },
  "title": "Inbox"
}
"""
ANDROID = """<?xml version="1.0" encoding="utf-8"?>
<resources xmlns:xliff="urn:oasis:names:tc:xliff:document:1.2">
    <!-- a comment with words -->
    <string name="app_name" translatable="false">Acme</string>
    <string name="hello">Hello, <b>%1$s</b>! You\\'re
        welcome.</string>
    <string name="left">You have <xliff:g id="n" example="5">%1$d</xliff:g> left\\n\\nTap \\"OK\\".</string>
    <string name="quoted">"It's  fine"</string>
    <string name="alias">@string/hello</string>
    <string name="html"><![CDATA[<p>Read <a href="x">this</a> & that</p>]]></string>
    <plurals name="files"><item quantity="one">%d file</item><item quantity="other">%d files</item></plurals>
    <string-array name="days"><item>Monday</item></string-array>
    <dimen name="margin">16dp</dimen>
</resources>
"""
APPLE = """/* Title of the
   "main" window = "no entry"; */
"window.title" = "Welcome to “Acme”";
// Another comment
"quit %@" = "Quit \\"%@\\"\\nnow?";
CFBundleName = "Acme App" ;
"number" = "%d";
"""
XCSTRINGS = """{
  "sourceLanguage" : "en",
  "strings" : {
    "%lld files" : {
      "localizations" : {
        "en" : {
          "variations" : {
            "plural" : {
              "one" : {
                "stringUnit" : {
                  "state" : "translated",
                  "value" : "%lld file"
                }
              },
              "other" : {
                "stringUnit" : {
                  "state" : "translated",
                  "value" : "%lld files"
                }
              }
            }
          }
        }
      }
    },
    "Acme" : {
      "shouldTranslate" : false
    },
    "Done" : {
      "localizations" : {
        "de" : {
          "stringUnit" : {
            "state" : "translated",
            "value" : "Fertig"
          }
        }
      }
    },
    "Open “it”" : {

    }
  },
  "version" : "1.0"
}"""
PROPERTIES = """# A comment = with words
! another one
title = Settings and more
message.long: This value goes on \\
              in the next line
unicode=Gr\\u00f6\\u00dfe \\: size
path=C:\\\\temp\\nnext line
empty=
  key\\ with\\ spaces   value of it
number=42
"""
SRT = """1
00:00:01,000 --> 00:00:04,000
<i>Welcome back</i> to the show,
ladies and gentlemen.

2
00:00:05,000 --> 00:00:06,500
- Who is there?
- Nobody.

3
00:00:07,000 --> 00:00:08,000
{\\an8}12:30
"""
VTT = """WEBVTT - a title with words

NOTE
Words for the translator.

STYLE
::cue { color: red }

intro
00:01.000 --> 00:04.000 align:start
<v Ada>Never drink <b>liquid</b> nitrogen.</v>

01:00:05.000 --> 01:00:06.000
It will <00:00:05.500>hurt.
"""

SAMPLES = {
    "a.md": (
        MARKDOWN,
        [
            "Getting <1>started</1>",
            "This is a paragraph that was wrapped by its author at some column, with <1>bold words</1>, <2/>,"
            " and a <3>link to the manual</3>.",
            "title",
            "Press the <1/> key now or <2>not</2>",
            "Second item with <1>A picture</1>",
            "Number one",
            "Quoted text that is also wrapped by somebody who quoted it.",
            "Name",
            "What it does",
            "Say more",
            "Line one<1/>line two with *stars* & <2/>https://example.org<3/> and <4>ref</4> snake_case.",
        ],
    ),
    "i18n.json": (
        I18NEXT,
        ["Open “it”", "{{count}} file", "{{count}} files", "First", 'ä\t"Second"', "See <1/> now"],
    ),
    "messages.json": (CHROME, ["Hello, $USER$!", "Goodbye"]),
    "app_en.arb": (
        ARB,
        ["{count, plural, =0{No messages} one{One message} other{{count} messages}}", "Inbox"],
    ),
    "strings.xml": (
        ANDROID,
        [
            "Hello, <1>%1$s</1>! You're welcome.",
            'You have <1/> left\\n\\nTap "OK".',
            "It's  fine",
            '<p>Read <a href="x">this</a> & that</p>',
            "%d file",
            "%d files",
            "Monday",
        ],
    ),
    "Localizable.strings": (APPLE, ["Welcome to “Acme”", 'Quit "%@"\\nnow?', "Acme App"]),
    "a.properties": (
        PROPERTIES,
        [
            "Settings and more",
            "This value goes on in the next line",
            "Größe : size",
            "C:\\\\temp\\nnext line",
            "value of it",
        ],
    ),
    "a.srt": (
        SRT,
        ["<1>Welcome back</1> to the show, ladies and gentlemen.", "Who is there?", "Nobody."],
    ),
    "a.vtt": (VTT, ["Never drink <1>liquid</1> nitrogen.", "It will <1/>hurt."]),
}
