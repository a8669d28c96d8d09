"""Language codes, matched as people mean them: `en-GB` and `EN_us` serve `en`, `eng_Latn` is `en`."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from kster.errors import KsterError
from kster.formats.pair import UnusableUnit

# Three-letter codes (ISO 639-2, 639-3 and the ones NLLB uses) and retired two-letter ones, each with the
# two-letter code that files usually carry.
_SHORT_CODES = (
    "afr=af aka=ak alb=sq als=sq amh=am ara=ar arb=ar arg=an arm=hy asm=as ayr=ay aym=ay aze=az "
    "azj=az bak=ba bam=bm baq=eu bel=be ben=bn bos=bs bre=br bul=bg bur=my cat=ca ces=cs chi=zh cmn=zh "
    "cos=co cym=cy cze=cs dan=da deu=de dut=nl dzo=dz ekk=et ell=el eng=en epo=eo est=et eus=eu ewe=ee "
    "fao=fo fas=fa fij=fj fin=fi fra=fr fre=fr ful=ff fuv=ff gaz=om geo=ka ger=de gla=gd gle=ga glg=gl "
    "gre=el grn=gn guj=gu hat=ht hau=ha hbs=sh heb=he hin=hi hrv=hr hun=hu hye=hy ibo=ig ice=is ind=id "
    "isl=is ita=it iw=he in=id jav=jv ji=yi jpn=ja kal=kl kan=kn kas=ks kat=ka kaz=kk khk=mn khm=km "
    "kik=ki kin=rw kir=ky kmr=ku kon=kg kor=ko kur=ku lao=lo lat=la lav=lv lim=li lin=ln lit=lt ltz=lb "
    "lug=lg lvs=lv mac=mk mal=ml mao=mi mar=mr may=ms mkd=mk mlg=mg mlt=mt mon=mn mri=mi msa=ms mya=my "
    "nep=ne nld=nl nno=nn no=nb nob=nb nor=nb npi=ne nya=ny oci=oc ori=or orm=om ory=or oss=os pan=pa "
    "pbt=ps per=fa pes=fa plt=mg pol=pl por=pt pus=ps que=qu quy=qu roh=rm ron=ro rum=ro run=rn rus=ru "
    "sag=sg san=sa sin=si slk=sk slo=sk slv=sl smo=sm sna=sn snd=sd som=so sot=st spa=es sqi=sq srd=sc "
    "srp=sr ssw=ss sun=su swa=sw swe=sv swh=sw tam=ta tat=tt tel=te tgk=tg tgl=tl tha=th tib=bo tir=ti "
    "ton=to tsn=tn tso=ts tuk=tk tur=tr twi=tw uig=ug ukr=uk urd=ur uzb=uz uzn=uz vie=vi wel=cy wol=wo "
    "xho=xh ydd=yi yid=yi yor=yo zho=zh zsm=ms zul=zu"
)
_SHORT = dict(entry.split("=") for entry in _SHORT_CODES.split())
# Written Chinese is told apart by script, but most files name a region instead.
_CHINESE_SCRIPTS = {"CN": "HANS", "SG": "HANS", "TW": "HANT", "HK": "HANT", "MO": "HANT"}
_SEVERAL_SCRIPTS = frozenset(["az", "bs", "kk", "ks", "ku", "mn", "ms", "pa", "sd", "sr", "tg", "uz", "zh"])
_CODE = re.compile(r"(?:[A-Za-z]{2,3}|x)(?:[-_][A-Za-z0-9]{2,8})*")


MAX_LISTED = 100  # languages remembered for an error message; no honest file has more


@dataclass(frozen=True, slots=True)
class _Language:
    primary: str
    script: str | None = None
    region: str | None = None


def _parse(code: str) -> _Language:
    primary, *rest = re.split(r"[-_]", code.strip())
    primary = primary.lower()
    if len(primary) < 2:  # x-klingon, i-default: private or grandfathered, compared as a whole
        return _Language(code.strip().lower().replace("_", "-"))
    primary = _SHORT.get(primary, primary)
    script = next((part.upper() for part in rest if re.fullmatch("[A-Za-z]{4}", part)), None)
    region = next((part.upper() for part in rest if re.fullmatch("[A-Za-z]{2}|[0-9]{3}", part)), None)
    if primary == "zh" and script is None and region is not None:
        script = _CHINESE_SCRIPTS.get(region)
    return _Language(primary, script, region)


def looks_like_code(text: str) -> bool:
    """Whether `text` has the form of a language code (not whether there is such a language)."""
    return _CODE.fullmatch(text.strip()) is not None


def is_one_language(code: str) -> bool:
    """Whether a code names a language rather than a group of them, as `mul`, `gem` and `ROMANCE` do."""
    return len(_parse(code).primary) == 2


def bcp47(code: str) -> str:
    """The code as TMX wants it and other programs know it: `eng_Latn` is `en`, `pt_br` is `pt-BR`."""
    if len(re.split(r"[-_]", code.strip())[0]) < 2:
        return code.strip()
    language = _parse(code)
    script = language.script if language.primary in _SEVERAL_SCRIPTS and not language.region else None
    return "-".join(filter(None, (language.primary, script and script.title(), language.region)))


@lru_cache(maxsize=1024)
def match_rank(wanted: str, found: str) -> int:
    """How well the language `found` in a file serves the one `wanted`; 0 means not at all.

    3: the same code but for case and separator. 2: the same language, script and region in other
    spelling (`eng`, `en`). 1: one of them says more than the other (`en`, `en-GB`). Two different
    regions or scripts (`pt-BR`, `pt-PT`) do not serve each other.
    """
    if wanted.strip().lower().replace("_", "-") == found.strip().lower().replace("_", "-"):
        return 3
    one, other = _parse(wanted), _parse(found)
    if one == other:
        return 2
    if one.primary != other.primary:
        return 0
    if one.script and other.script and one.script != other.script:
        return 0
    if one.region and other.region and one.region != other.region:
        return 0
    return 1


def best_two(source_ranks: Sequence[int], target_ranks: Sequence[int]) -> tuple[int, int] | None:
    """Positions of the best source and the best target that are not the same; None if there are none.

    Of equally good ones the first wins. Looking at the two best of each side is enough: at most one of
    them is taken by the other side.
    """

    def leaders(ranks: Sequence[int]) -> list[int]:
        matching = [i for i, rank in enumerate(ranks) if rank]
        return sorted(matching, key=lambda i: -ranks[i])[:2]

    choices = [(s, t) for s in leaders(source_ranks) for t in leaders(target_ranks) if s != t]
    return max(choices, key=lambda choice: source_ranks[choice[0]] + target_ranks[choice[1]], default=None)


class LanguagePicker:
    """Picks source and target among the languages of each unit of a multilingual file.

    A wanted language of None means: let the file say. The source is then the one the file declares, the
    target the only other language there is.
    """

    def __init__(self, path: Path, source_lang: str | None, target_lang: str | None) -> None:
        self._path = path
        self.source_lang = source_lang
        self.target_lang = target_lang
        self._found: Counter[str] = Counter()
        self._matched = False

    def pick(self, languages: Sequence[str], declared_source: str | None = None) -> tuple[int, int]:
        """Positions of source and target in `languages`; `UnusableUnit` if one of them is missing."""
        if len(self._found) < MAX_LISTED or self._found.keys() >= set(languages):
            self._found.update(set(languages))
        if self.source_lang is None or self.target_lang is None:
            self._let_the_file_say(languages, declared_source)
        assert self.source_lang
        assert self.target_lang
        chosen = best_two(
            [match_rank(self.source_lang, language) for language in languages],
            [match_rank(self.target_lang, language) for language in languages],
        )
        if chosen is None:
            has = ", ".join(languages[:10]) or "no language"
            raise UnusableUnit(f"not in both {self.source_lang} and {self.target_lang} (has {has})")
        self._matched = True
        return chosen

    def _let_the_file_say(self, languages: Sequence[str], declared_source: str | None) -> None:
        source = self.source_lang or declared_source
        if source is None:
            raise KsterError(
                f"{self._path} does not say which language is the source; name source and target "
                f"(found: {', '.join(languages)})"
            )
        others = [language for language in languages if not match_rank(source, language)]
        if self.target_lang is None and len(set(others)) != 1:
            raise KsterError(
                f"{self._path} does not say which language is the target; name it "
                f"(found: {', '.join(languages)})"
            )
        self.source_lang, self.target_lang = source, self.target_lang or others[0]

    def require_a_match(self) -> None:
        """At the end of a file: an error for people if it had units but none in both languages."""
        if self._found and not self._matched:
            found = ", ".join(f"{language} ({n:,} units)" for language, n in self._found.most_common(20))
            raise KsterError(
                f"{self._path}: no unit is in both {self.source_lang} and {self.target_lang}. "
                f"Languages found: {found}"
            )
