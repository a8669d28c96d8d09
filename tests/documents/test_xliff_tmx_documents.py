"""XLIFF and TMX: units without a translation get one with its tags, and all else stays as it is."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from documents.translated import capitals, texts, written
from kster.documents.kinds import open_document
from kster.errors import KsterError
from kster.formats import Pair, read_pairs
from tiny import ENGLISH

XLIFF = f"""<?xml version="1.0"?>
<xliff version="1.2" xmlns="urn:oasis:names:tc:xliff:document:1.2">
<file source-language="en" original="a" datatype="plaintext"><body>
<trans-unit id="1"><source>{ENGLISH[0]}<x id="1"/> {ENGLISH[1]}</source></trans-unit>
<trans-unit id="2"><source>{ENGLISH[2]}</source><target>steht schon da</target></trans-unit>
<trans-unit id="3" translate="no"><source>{ENGLISH[3]}</source></trans-unit>
</body></file></xliff>"""
XLIFF2 = f"""<xliff version="2.0" xmlns="urn:oasis:names:tc:xliff:document:2.0" srcLang="en" trgLang="de">
<file id="f"><unit id="u"><segment><source>{ENGLISH[4]}</source></segment>
<segment state="final"><source>done</source><target>fertig</target></segment></unit></file></xliff>"""
TMX = f"""<?xml version="1.0"?><!DOCTYPE tmx SYSTEM "tmx14.dtd">
<tmx version="1.4"><header srclang="en"/><body>
<tu><tuv xml:lang="en"><seg>{ENGLISH[0]}<bpt i="1">&lt;b&gt;</bpt></seg></tuv></tu>
<tu><tuv xml:lang="en"><seg>x</seg></tuv><tuv xml:lang="de"><seg>schon da</seg></tuv></tu></body></tmx>"""
# Written as no library would write it. Nothing in it is to be translated.
FINISHED = """<?xml version='1.0' encoding='UTF-8' standalone="no"?>
<!-- before --><?pi something?>
<x:xliff version="1.2"   xmlns:x='urn:oasis:names:tc:xliff:document:1.2' >
  <x:file original='a "b".txt' source-language="en" datatype="plaintext"><x:body>
    <x:note>Do not &#65; touch &gt; <![CDATA[this & that]]></x:note>
    {units}
  </x:body></x:file>
</x:xliff>
<!-- after -->
"""


@pytest.mark.parametrize(
    "unit",
    [
        '<x:trans-unit id="1"><x:source></x:source></x:trans-unit>',
        '<x:trans-unit id="1"><x:source>12 345</x:source></x:trans-unit>',
        '<x:trans-unit><x:source>a</x:source><x:target state="final"><x:x id="1"/></x:target></x:trans-unit>',
        '<x:trans-unit id="1"><x:source>a</x:source><x:target><x:x id="1"/></x:target></x:trans-unit>',
        '<x:trans-unit id="1"><x:source>a</x:source><x:target state="final"/></x:trans-unit>',
        '<x:trans-unit id="1"><x:source>a</x:source><x:target state="signed-off"/></x:trans-unit>',
        '<x:trans-unit id="1" approved="yes"><x:source>a</x:source><x:target></x:target></x:trans-unit>',
        '<x:trans-unit id="1" translate="no"><x:source>a</x:source></x:trans-unit>',
        '<x:trans-unit id="1"><x:source>a</x:source><x:target state="new">b</x:target></x:trans-unit>',
        '<x:segment state="final"><x:source>a</x:source><x:target><x:ph id="1"/></x:target></x:segment>',
        '<x:segment state="initial"><x:source>a</x:source><x:target>b</x:target></x:segment>',
    ],
)
def test_a_unit_that_needs_no_translation_leaves_the_file_as_it_was(unit: str) -> None:
    content = FINISHED.replace("{units}", unit).encode()
    assert capitals("a.xlf", content) == content


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-be", "iso-8859-1"])
@pytest.mark.parametrize("line_end", ["\n", "\r\n"])
def test_only_targets_are_new(encoding: str, line_end: str) -> None:
    unit = '<x:trans-unit id="1">\n  <x:source >süß\nist <x:g id="1" >&#65;</x:g></x:source></x:trans-unit>'
    before = FINISHED.replace("{units}", unit).replace("\n", line_end)
    if encoding == "iso-8859-1":
        before = before.replace("UTF-8", "ISO-8859-1")
    done = capitals("a.xlf", before.encode(encoding))
    mark = 'state="needs-review-translation" state-qualifier="leveraged-mt"'
    target = f'{line_end}  <x:target {mark}>SÜSS{line_end}IST <x:g id="1" >A</x:g></x:target>'
    after = before.replace("</x:source>", f"</x:source>{target}")
    after = after.replace('datatype="plaintext">', 'datatype="plaintext" target-language="de">')
    assert done == after.encode(encoding)


def test_characters_that_the_encoding_does_not_have_are_written_as_numbers() -> None:
    content = '<?xml version="1.0" encoding="ISO-8859-1"?><tmx><header srclang="en"/><body><tu><tuv '
    content += 'xml:lang="en"><seg>ü</seg></tuv></tu></body></tmx>'
    assert "<seg>&#8222;Ü</seg>".encode("latin-1") in written("a.tmx", content.encode("latin-1"), ["„Ü"])


def test_a_target_comes_after_the_segmented_source() -> None:
    segmented = '<seg-source><mrk mtype="seg" mid="1">one</mrk></seg-source>'
    unit = f'<trans-unit id="1"><source>one</source>{segmented}<alt-trans><target>a</target></alt-trans>'
    content = f'<xliff><file source-language="en"><body>{unit}</trans-unit></body></file></xliff>'
    done = capitals("a.xlf", content.encode()).decode()
    assert re.search(r"</seg-source><target [^>]*>ONE</target><alt-trans>", done)


def test_tags_of_a_unit_are_codes_in_one_text() -> None:
    unit = XLIFF.replace(f'{ENGLISH[0]}<x id="1"/> {ENGLISH[1]}', 'the <g id="1">red</g> <x id="2"/> lid')
    assert texts("a.xlf", unit.encode()) == ["the <1>red</1> <2/> lid"]
    moved = written("a.xlf", unit.encode(), ["<1>rot</1> <2/> ist der Deckel"])
    assert b'leveraged-mt"><g id="1">rot</g> <x id="2"/> ist der Deckel</target>' in moved


def test_codes_that_stand_for_two_ends_are_a_pair() -> None:
    bold = TMX.replace('<bpt i="1">&lt;b&gt;</bpt>', ' <bpt i="1">&lt;b&gt;</bpt>red<ept i="1"/> lid')
    assert texts("a.tmx", bold.encode()) == [f"{ENGLISH[0]} <1>red</1> lid"]
    crossed = TMX.replace('<bpt i="1">&lt;b&gt;</bpt>', '<bpt i="1"/>a<bpt i="2"/>b<ept i="1"/>c<ept i="2"/>')
    assert texts("a.tmx", crossed.encode()) == [f"{ENGLISH[0]}<1>a<2/>b</1>c<3/>"]


def test_an_xliff_file_says_what_is_not_to_be_translated_at_any_level() -> None:
    one = XLIFF.replace('<trans-unit id="1">', '<group translate="no"><trans-unit id="1">')
    one = one.replace('</trans-unit>\n<trans-unit id="2">', '</trans-unit></group>\n<trans-unit id="2">')
    assert capitals("a.xlf", one.encode()).count(b"<target") == 1
    two = XLIFF2.replace('<unit id="u">', '<unit id="u" translate="no">')
    assert capitals("a.xlf", two.encode()) == two.encode()
    held = XLIFF.replace('<x id="1"/>', '<mrk mtype="protected">Acme<!-- -> --></mrk>')
    done = capitals("a.xlf", held.encode()).partition(b"<target")[2]
    assert b'<mrk mtype="protected">Acme<!-- -> --></mrk>' in done


def test_a_copy_of_the_source_that_says_it_is_not_translated_is() -> None:
    copied = XLIFF.replace("<target>steht schon da", f'<target state="new" xml:lang="de">{ENGLISH[2]}')
    done = capitals("a.xlf", copied.encode()).decode()
    marks = 'state="needs-review-translation" xml:lang="de" state-qualifier="leveraged-mt"'
    assert f"<target {marks}>{ENGLISH[2].upper()}</target>" in done


@pytest.mark.parametrize(("content", "finished"), [(XLIFF, "steht schon da"), (XLIFF2, "fertig")])
def test_an_import_learns_nothing_of_the_machines_before_somebody_looked_at_it(
    content: str, finished: str, tmp_path: Path
) -> None:
    (tmp_path / "a.xlf").write_bytes(capitals("a.xlf", content.encode()))
    pairs = [item.target for item in read_pairs(tmp_path / "a.xlf", "en", "de") if isinstance(item, Pair)]
    assert pairs == [finished]


def test_what_the_machine_did_is_not_done_again() -> None:
    for content in (XLIFF, XLIFF2, XLIFF2.replace(ENGLISH[4], "NAME")):
        once = capitals("a.xlf", content.encode())
        assert once != content.encode()
        assert capitals("a.xlf", once) == once


@pytest.mark.parametrize("variant", ["<seg/>", "<seg></seg>", "<note>n</note>", ""])
def test_an_empty_translation_in_a_tmx_is_filled_in(variant: str) -> None:
    done = capitals("a.tmx", TMX.replace("<seg>schon da</seg>", variant).encode()).decode()
    assert done.endswith("<seg>X</seg></tuv></tu></body></tmx>")
    assert done.count("<tuv") == 4


def test_a_tmx_is_read_in_any_namespace_and_keeps_codes_without_text() -> None:
    named = TMX.replace("<tmx ", '<tmx xmlns="http://www.lisa.org/tmx14" ').replace("schon da", "<ph/>")
    done = capitals("a.tmx", named.encode()).decode()
    assert f'<tuv xml:lang="de"><seg>{ENGLISH[0].upper()}<bpt i="1">' in done
    assert '<tuv xml:lang="de"><seg><ph/></seg></tuv>' in done


@pytest.mark.parametrize(
    ("name", "content", "reason"),
    [
        ("a.xlf", XLIFF.replace('"en"', '"es"'), "no unit can be translated en → de; .* es → [?]"),
        ("a.xlf", XLIFF.replace('"en"', '"en" target-language="fr"'), "en → fr"),
        ("a.xlf", XLIFF2.replace('trgLang="de"', 'trgLang="fr"'), "en → fr"),
        ("a.tmx", TMX.replace('xml:lang="en"', 'xml:lang="es"'), "languages found: de, es"),
        ("a.xlf", XLIFF[:300], "line 5: not well-formed XML: [a-z ]+"),
        ("a.xlf", "", "line 1: not well-formed XML: no element found"),
        ("a.tmx", XLIFF, "its root is <xliff>, not <tmx>"),
        ("a.xlf", "<xliff>" + "<g>" * 300, "line 1: more than 256 elements in another"),
        ("a.tmx", TMX.replace("<seg>x", "<seg>&x;"), "it uses entities, which are not accepted"),
    ],
)
def test_a_file_that_cannot_be_translated_is_refused_with_the_reason(
    name: str, content: str, reason: str
) -> None:
    with pytest.raises(KsterError, match=f"^{name}: .*{reason}; nothing was translated$"):
        open_document(name, content.encode(), "en", "de")


def test_variants_of_the_languages_will_do_and_units_in_others_are_left_alone() -> None:
    variant = XLIFF.replace('"en"', '"en-GB" target-language="de-AT"')
    assert b'target-language="de-AT"' in capitals("a.xlf", variant.encode())
    french = (
        '<file source-language="en" target-language="fr"><trans-unit><source>a</source></trans-unit></file>'
    )
    both = XLIFF.replace("</xliff>", f"{french}</xliff>")
    assert french in capitals("a.xlf", both.encode()).decode()


def test_the_source_language_is_what_the_file_says() -> None:
    assert open_document("a.xlf", XLIFF.encode(), "auto", "de").declared_source == "en"
    assert open_document("a.tmx", TMX.encode(), "auto", "de").declared_source == "en"
    with pytest.raises(KsterError, match="does not say which language is its source"):
        open_document("a.tmx", TMX.replace('srclang="en"', 'srclang="*all*"').encode(), "auto", "de")
