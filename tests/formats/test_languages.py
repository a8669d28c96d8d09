import pytest

from formats.conftest import read, tmx, tu
from kster.errors import KsterError
from kster.formats.language_picker import best_two
from kster.text.languages import bcp47, is_one_language, match_rank


@pytest.mark.parametrize(
    ("wanted", "found"),
    [
        ("en", "en-GB"),
        ("en", "EN_us"),
        ("en-GB", "en"),
        ("de", "DEU"),
        ("eng_Latn", "en-US"),
        ("zho_Hans", "zh-CN"),
        ("zh-TW", "zh-Hant"),
        ("nb", "no"),
        ("he", "iw"),
        ("sr-Latn-RS", "sr"),
    ],
)
def test_a_broader_or_narrower_code_serves(wanted: str, found: str) -> None:
    assert match_rank(wanted, found) > 0
    assert match_rank(found, wanted) > 0


@pytest.mark.parametrize(
    ("wanted", "found"),
    [
        ("en", "de"),
        ("en", "enm"),
        ("pt-BR", "pt-PT"),
        ("zh-Hans", "zh-TW"),
        ("sr-Latn", "sr-Cyrl"),
        ("x-a", "x-b"),
    ],
)
def test_another_language_region_or_script_does_not_serve(wanted: str, found: str) -> None:
    assert match_rank(wanted, found) == 0
    assert match_rank(found, wanted) == 0


def test_the_same_code_ranks_above_other_spellings_and_those_above_broader_codes() -> None:
    assert match_rank("en-GB", "EN_gb") > match_rank("en-GB", "eng-GB") > match_rank("en-GB", "en")


def test_source_and_target_are_never_the_same_variant() -> None:
    assert best_two([1, 1], [0, 3]) == (0, 1)
    assert best_two([3, 1], [3, 1]) in {(0, 1), (1, 0)}
    assert best_two([1, 0], [1, 0]) is None


def test_the_exact_variant_is_preferred_when_a_unit_has_both(put) -> None:
    unit = (
        '<tu><tuv xml:lang="en-US"><seg>color</seg></tuv><tuv xml:lang="en"><seg>hue</seg></tuv>'
        '<tuv xml:lang="de-AT"><seg>Farbe (AT)</seg></tuv><tuv xml:lang="de-DE"><seg>Farbe</seg></tuv></tu>'
    )
    path = put("a.tmx", tmx(unit))
    assert [(p.source, p.target) for p in read(path, "en", "de-DE")[0]] == [("hue", "Farbe")]
    assert [(p.source, p.target) for p in read(path, "en_us", "de")[0]] == [("color", "Farbe (AT)")]


def test_two_variants_of_one_language_can_be_source_and_target(put) -> None:
    path = put("a.tmx", tmx(tu("colour", "color", source_lang="en-GB", target_lang="en-US")))
    assert [(p.source, p.target) for p in read(path, "en-US", "en")[0]] == [("color", "colour")]


def test_no_match_is_an_error_that_lists_the_languages_found(put) -> None:
    path = put("a.tmx", tmx(tu("a", "b", target_lang="fr-CA"), tu("c", "d", target_lang="it")))
    with pytest.raises(
        KsterError, match=r"a\.tmx: no unit is in both en and de.*en \(2 units\).*fr-CA \(1 units\)"
    ):
        read(path)


def test_a_unit_without_one_of_the_languages_is_rejected_and_says_what_it_has(put) -> None:
    path = put("a.tmx", tmx(tu("a", "b"), tu("c", "d", id="7", target_lang="fr")))
    pairs, rejections = read(path)
    assert len(pairs) == 1
    assert (rejections[0].line, rejections[0].unit) == (5, "7")
    assert "has en, fr" in rejections[0].reason


def test_without_wanted_languages_the_file_says(put) -> None:
    path = put("a.tmx", tmx(tu("b", "a", source_lang="de", target_lang="en"), srclang="en"))
    assert [(p.source, p.target) for p in read(path, None, None)[0]] == [("a", "b")]


def test_without_wanted_languages_an_ambiguous_file_is_an_error(put) -> None:
    with pytest.raises(KsterError, match="which language is the source"):
        read(put("a.tmx", tmx(tu("a", "b"), srclang="*all*")), None, None)
    unit = "".join(f'<tuv xml:lang="{x}"><seg>{x}</seg></tuv>' for x in ("en", "de", "fr"))
    with pytest.raises(KsterError, match="which language is the target"):
        read(put("b.tmx", tmx(f"<tu>{unit}</tu>")), "en", None)


@pytest.mark.parametrize(
    ("code", "written"),
    [
        ("en", "en"),
        ("eng_Latn", "en"),
        ("deu", "de"),
        ("pt_br", "pt-BR"),
        ("EN-gb", "en-GB"),
        ("zho_Hans", "zh-Hans"),
        ("zh-TW", "zh-TW"),
        ("srp_Cyrl", "sr-Cyrl"),
        ("ast_Latn", "ast"),
        ("x-klingon", "x-klingon"),
    ],
)
def test_codes_are_written_as_other_programs_know_them(code: str, written: str) -> None:
    assert bcp47(code) == written
    assert match_rank(code, written) > 0


def test_groups_of_languages_are_told_from_languages() -> None:
    assert all(map(is_one_language, ("en", "eng_Latn", "pt-BR", "deu")))
    assert not any(map(is_one_language, ("mul", "gem", "ROMANCE", "zle")))
