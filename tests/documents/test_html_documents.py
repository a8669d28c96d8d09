"""Pages: text is translated where people read it, and every other byte stays."""

from __future__ import annotations

import pytest

from documents.translated import capitals, texts, written

PAGE = """<!DOCTYPE html>
<html lang="en-GB"><head><meta charset=utf-8><META NAME=Description content='A "fine" page'>
<meta name="viewport" content="width=device-width"><title>Keys &amp; locks</title>
<style>p > a { color: red }</style><script>if (a < b) document.write("<p>No</p>")</script></head>
<body class=plain>
  <!-- a comment with words -->
  <p>
    Do not forget your <code>ID-123</code> card,
    5&nbsp;kg &lt; 6&#160;kg.
  </p>
  {% if user %}<p>Hello {{ user.name|title }}, <a href="/go?a=1&b=2" title="Go there">go <b>now</b></a>!</p>
  <?php echo "<p>words</p>"; ?><%= words %>
  <p>First line<br/>second line</P>
  <img src=a.png alt="A picture"><input type=submit value=Send><input value="not this">
  <div translate="no">Acme <p>stays</p></div><p>by <span class="x notranslate">Acme Inc</span> here
  <ul><li>One<li>Two</ul>
  <textarea>typed text</textarea>
</body></html>

"""


def test_what_people_read_is_translated_and_nothing_else() -> None:
    assert texts("a.html", PAGE.encode()) == [
        'A "fine" page',
        "Keys & locks",
        "Do not forget your <1/> card, 5\xa0kg < 6\xa0kg.",
        "Go there",
        "Hello <1/>, <2>go <3>now</3></2>!",
        "First line<1/>second line",
        "A picture",
        "Send",
        "by <1/> here",
        "One",
        "Two",
    ]


def test_a_page_that_says_the_same_in_the_other_language_stays_byte_for_byte() -> None:
    page = PAGE.replace('lang="en-GB"', 'lang="x"').encode()
    assert written("a.html", page, texts("a.html", page)) == page


def test_a_translated_page_differs_in_its_texts_and_its_language_only() -> None:
    done = capitals("a.html", PAGE.encode()).decode()
    assert done.lower() == PAGE.lower().replace('lang="en-gb"', 'lang="de"').replace(
        "&#160;", "&nbsp;"
    ).replace("card,\n    5", "card, 5")
    assert "<code>ID-123</code> CARD, 5&nbsp;KG &lt; 6&nbsp;KG.\n  </p>" in done
    assert '<a href="/go?a=1&b=2" title="GO THERE">GO <b>NOW</b></a>' in done
    assert done.endswith("</html>\n\n")


def test_a_code_may_move_in_its_sentence() -> None:
    page = b"<p>Press <b>the red</b> <kbd>F1</kbd> key.</p>"
    assert texts("a.html", page) == ["Press <1>the red</1> <2/> key."]
    done = written("a.html", page, ["<2/> ist <1>die rote</1> Taste."])
    assert done == b"<p><kbd>F1</kbd> ist <b>die rote</b> Taste.</p>"


def test_tags_that_do_not_match_stay_where_they_are() -> None:
    page = b"<p>a </i> <b>b <i>c</b> d</i></p><code>e<p>f"
    assert texts("a.html", page) == ["a <1/> <2>b <3/>c</2> d<4/>", "<1/>e", "f"]
    assert capitals("a.html", page) == b"<p>A </i> <b>B <i>C</b> D</i></p><code>E<p>F"


@pytest.mark.parametrize(
    "text", ["a < b", "a <- b", "{{ never closed", "<!-- never closed", "<a never closed"]
)
def test_what_is_no_markup_is_text(text: str) -> None:
    assert texts("a.html", f"<p>{text}</p>".encode()) == [text]


@pytest.mark.parametrize(
    ("head", "encoding"),
    [
        ('<meta charset="iso-8859-1">', "cp1252"),
        ('<meta http-equiv="Content-Type" content="text/html; charset=windows-1252">', "cp1252"),
        ("<title>x</title>", "utf-8"),
        ("", "utf-8-sig"),
    ],
)
def test_a_page_stays_in_its_encoding(head: str, encoding: str) -> None:
    page = f"<html lang='en-GB'><head>{head}</head><body>“süß” and</body></html>"
    done = written("a.html", page.encode(encoding), ["x", "“süß” и"] if "title" in head else ["“süß” и"])
    cyrillic = "и" if encoding.startswith("utf") else "&#1080;"
    expected = page.replace("en-GB", "de").replace("and", cyrillic)
    assert done == expected.encode(encoding)


def test_a_page_may_hold_what_xml_may_not() -> None:
    page = b"<html><body>a\x01<b>b</b>&#2; <code>1<!-- c --></code></body></html>"
    assert b"<b>B</b>" in capitals("a.html", page)
    assert b"<code>1<!-- c --></code>" in capitals("a.html", page)


@pytest.mark.parametrize(
    ("html", "pieces", "done"),
    [
        ("Just text & more", ["Just text & more"], "JUST TEXT &amp; MORE"),
        ("<p> a <b>b</b>c<!-- no --> d</p>", ["a <1>b</1>c<2/> d"], "<p> A <b>B</b>C<!-- no --> D</p>"),
        ('<i title="t">x</i>', ["t", "<1>x</1>"], '<i title="T">X</i>'),
        ("<p>one<p>two", ["one", "two"], "<p>ONE<p>TWO"),
        ("<pre>a</pre><kbd>b</kbd> c", ["<1/> c"], "<pre>a</pre><kbd>b</kbd> C"),
        ("12 <br> 3", [], "12 <br> 3"),
        ("<p>one\n   two\tthree</p>", ["one two three"], "<p>ONE TWO THREE</p>"),
        ("a &lt;b&gt;", ["a <b>"], "A &lt;B&gt;"),
        ("<div>" * 300 + "word", ["word"], "<div>" * 300 + "WORD"),
        ("", [], ""),
    ],
)
def test_a_piece_of_a_page_keeps_its_markup(html: str, pieces: list[str], done: str) -> None:
    assert texts("a.html", html.encode()) == pieces
    assert capitals("a.html", html.encode()).decode() == done
