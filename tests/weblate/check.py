"""Weblate itself asks a running KSTER server, through its LibreTranslate and ModernMT machinery.

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

SERVICES = ("libretranslate", "modernmt")
STRINGS = ["Empty the drip tray.", "Open the water tank.", "Delete %(count)d files from %(name)s?"]
PLACEHOLDER = re.compile(r"%\(\w+\)[ds]")
PO = 'msgid ""\nmsgstr ""\n"Language: de\\n"\n"Content-Type: text/plain; charset=UTF-8\\n"\n'
TAUGHT = ("The zibbel is warm.", "Der Zibbel ist schön warm.")


def main() -> None:
    url, key = sys.argv[1].rstrip("/"), sys.argv[2] if len(sys.argv) > 2 else "any"
    print(f"Weblate {VERSION}, KSTER at {url}")
    component = make_component(Path(os.environ["WEBLATE_CHECK_DIR"]) / "repository")
    units = list(component.translation_set.get(language__code="de").unit_set.order_by("position"))
    addresses = {"libretranslate": url, "modernmt": f"{url}/mmt"}
    for service in SERVICES:
        install(service, {"url": addresses[service], "key": key})
        refuse(service, {"url": f"{url}/nowhere", "key": key})
        translate_units(machine(service), units)
    known = memories(url, key)
    install("modernmt", {"url": addresses["modernmt"], "key": key, "context_vector": f"{known[0]['id']}:0.5"})
    translate_units(machine("modernmt"), units)
    install("modernmt", {"url": addresses["modernmt"], "key": key})
    learn(url, key, units[0])
    use_glossary(component, units[0], url, key)
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


def use_glossary(component: Component, unit: Unit, url: str, key: str) -> None:
    """A project's glossary is uploaded once, and again when it has changed, in the place of the old one."""
    author = User.objects.create_user("check", "check@localhost", "of this check only")
    names = []
    for term, translation in (("drip tray", "Abtropfschale"), ("water tank", "Wassertank")):
        glossary = component.project.glossaries[0]
        language = glossary.translation_set.get(language__code="de")
        language.add_unit(None, "", term, translation, author=author, state=STATE_TRANSLATED)
        service = machine("modernmt")
        ((suggestion,),) = service.translate(unit)
        assert suggestion["text"].strip()
        (name,) = service.get_glossaries(use_cache=False)
        names.append(name)
        assert [memory["name"] for memory in memories(url, key)].count(name) == 1
        print(f"glossary: {name}; {unit.source} → {suggestion['text']}")
    assert names[0] != names[1], "a changed glossary was not uploaded again"


if __name__ == "__main__":
    main()
