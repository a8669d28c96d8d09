"""Weblate itself asks a running KSTER server, through its LibreTranslate, ModernMT and DeepL machinery.

Run by `run.sh` in Weblate's environment. A project with a component and a glossary is made in an empty
Weblate; services are installed as an administrator does it, which makes Weblate check them; then strings are
translated one by one and as automatic translation does it, all with Weblate's own code and real requests.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from io import StringIO
from pathlib import Path

import django

django.setup()

import requests  # noqa: E402
from django.core.cache import cache  # noqa: E402
from django.core.management import CommandError, call_command  # noqa: E402
from weblate.auth.models import User  # noqa: E402
from weblate.configuration.models import Setting, SettingCategory  # noqa: E402
from weblate.lang.models import Language  # noqa: E402
from weblate.machinery.base import BatchMachineTranslation  # noqa: E402
from weblate.machinery.models import MACHINERY  # noqa: E402
from weblate.trans.models import Component, Project, Unit  # noqa: E402
from weblate.utils.state import STATE_TRANSLATED  # noqa: E402
from weblate.utils.version import VERSION  # noqa: E402

SERVICES = {"libretranslate": "", "modernmt": "/mmt", "deepl": "/v2"}  # and where each is served
STRINGS = ["Open the water tank.", "Where is the drip tray?", "Delete %(count)d files from %(name)s?"]
PLACEHOLDER = re.compile(r"%\(\w+\)[ds]")
PO = 'msgid ""\nmsgstr ""\n"Language: de\\n"\n"Content-Type: text/plain; charset=UTF-8\\n"\n'
GLOSSARY = {"water tank": "Vorratsbehälter", "drip tray": "Tropfwanne"}  # of the first two
TAUGHT = ("The zibbel is warm.", "Der Zibbel ist schön warm.")


def main() -> None:
    url, key = sys.argv[1].rstrip("/"), sys.argv[2] if len(sys.argv) > 2 else "any"
    print(f"Weblate {VERSION}, KSTER at {url}")
    component = make_component(Path(os.environ["WEBLATE_CHECK_DIR"]) / "repository")
    units = list(component.translation_set.get(language__code="de").unit_set.order_by("position"))
    for service, path in SERVICES.items():
        install(service, {"url": url + path, "key": key})
        refuse(service, {"url": f"{url}/nowhere", "key": key})
        translate_units(machine(service), units)
    known = memories(url, key)
    settings = {"url": f"{url}/mmt", "key": key}
    install("modernmt", {**settings, "context_vector": f"{known[0]['id']}:0.5"})
    translate_units(machine("modernmt"), units)
    install("modernmt", settings)
    learn(url, key, units[0])
    for number, (term, translation) in enumerate(GLOSSARY.items()):
        add_term(component, term, translation)
        for service in ("modernmt", "deepl"):
            use_glossary(service, units[number], translation)
    print("all checks passed")


def make_component(repository: Path) -> Component:
    """A git repository with one PO file, as a component of Weblate."""
    repository.mkdir()
    entries = (f'\n#, python-format\nmsgid "{text}"\nmsgstr ""\n' for text in [*STRINGS, TAUGHT[0]])
    (repository / "de.po").write_text(PO + "".join(entries), encoding="utf-8")
    for command in (
        ["git", "init", "-q", "-b", "main"],
        ["git", "add", "."],
        ["git", "-c", "user.name=check", "-c", "user.email=check@localhost", "commit", "-qm", "strings"],
    ):
        subprocess.run(command, cwd=repository, check=True)
    project = Project.objects.create(name="Check", slug="check", web="http://localhost/")
    return Component.objects.create(
        project=project,
        name="Strings",
        slug="strings",
        vcs="git",
        repo=repository.as_uri(),
        branch="main",
        filemask="*.po",
        file_format="po",
        new_lang="none",
        source_language=Language.objects.get(code="en"),
    )


def install(service: str, configuration: dict[str, str]) -> None:
    """As `weblate install_machinery` does it: Weblate asks for languages and a translation first."""
    said = StringIO()
    given = {"service": service, "configuration": json.dumps(configuration), "update": True}
    call_command("install_machinery", **given, stdout=said)
    print(f"{service}: {said.getvalue().strip()}")


def refuse(service: str, configuration: dict[str, str]) -> None:
    """A wrong address must be refused: otherwise `install` proves nothing."""
    try:
        call_command(
            "install_machinery", service=service, configuration=json.dumps(configuration), stderr=StringIO()
        )
    except CommandError:
        return
    raise AssertionError(f"{service}: Weblate accepts {configuration['url']}")


def machine(service: str) -> BatchMachineTranslation:
    """With nothing remembered, as in another process a month later."""
    cache.clear()
    settings = Setting.objects.get(category=SettingCategory.MT, name=service).value
    return MACHINERY[service](settings)


def translate_units(service: BatchMachineTranslation, units: list[Unit]) -> None:
    for unit in units:
        ((suggestion,),) = service.translate(unit)
        print(f"  {unit.source} → {suggestion['text']}")
        assert suggestion["text"].strip(), suggestion
        placeholders = PLACEHOLDER.findall(unit.source)
        assert sorted(PLACEHOLDER.findall(suggestion["text"])) == sorted(placeholders), suggestion
        assert suggestion["service"] == service.name
    for unit in units:
        unit.machinery = {}  # what another service has said
    service.batch_translate(units)
    for unit in units:
        assert unit.machinery["quality"] == [service.max_score], unit.machinery
    print(f"  {len(units)} strings by automatic translation, too")


def memories(url: str, key: str) -> list[dict[str, object]]:
    return requests.get(f"{url}/mmt/memories", headers={"MMT-ApiKey": key}, timeout=60).json()["data"]


def learn(url: str, key: str, unit: Unit) -> None:
    """What is taught is what Weblate gets next."""
    unit = unit.translation.unit_set.get(source=TAUGHT[0])
    example = {"q": TAUGHT[0], "s": TAUGHT[1], "source": "en", "target": "de", "api_key": key}
    requests.post(f"{url}/suggest", json=example, timeout=60).raise_for_status()
    for service in SERVICES:
        ((suggestion,),) = machine(service).translate(unit)
        assert suggestion["text"] == TAUGHT[1], suggestion
    print(f"taught: {TAUGHT[0]} → {TAUGHT[1]}")


def add_term(component: Component, term: str, translation: str) -> None:
    """To the project's glossary."""
    author, _ = User.objects.get_or_create(username="check", email="check@localhost")
    language = component.project.glossaries[0].translation_set.get(language__code="de")
    language.add_unit(None, "", term, translation, author=author, state=STATE_TRANSLATED)


def use_glossary(service: str, unit: Unit, translation: str) -> None:
    """A project's glossary is sent when it has changed, and its terms are kept."""
    translating = machine(service)
    before = set(translating.get_glossaries(use_cache=False))
    ((suggestion,),) = translating.translate(unit)
    assert translation in suggestion["text"], suggestion
    after = set(translating.get_glossaries(use_cache=False))
    (name,) = after - before  # a changed glossary is sent again, …
    languages = name.rpartition(":")[0]
    assert [one.rpartition(":")[0] for one in after].count(languages) == 1  # … and the old one is gone
    print(f"glossary by {service}: {name}; {unit.source} → {suggestion['text']}")


if __name__ == "__main__":
    main()
