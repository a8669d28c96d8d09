#!/usr/bin/env bash
# A wheel and a source distribution are built, the wheel is installed into an empty environment, and translates there.
set -euo pipefail
unset PYTHONPATH # which would let a checkout pass for what was installed
cd "$(dirname "$0")/../.."
place=$(mktemp -d)
trap 'rm -rf "$place"' EXIT
python=${PYTHON:-.venv/bin/python}

"$python" -m pip install --quiet --disable-pip-version-check build 2>/dev/null
"$python" -m build --outdir "$place/dist" . >"$place/build.log" 2>&1 || { cat "$place/build.log"; exit 1; }
ls "$place/dist"
"$python" - "$place"/dist/*.whl <<'PYTHON'
import sys, zipfile
names = zipfile.ZipFile(sys.argv[1]).namelist()
for wanted in (
    "kster/py.typed",
    "kster/cli/explain.html",
    "kster/server/page/static/index.html",
    "kster/smoothing/fitting/general_text/en-de.tsv",
    "kster/smoothing/universal/smoother.json",
    "kster/terms/german_plurals.tsv",
    "kster/translation/confidence.json",
):
    assert wanted in names, f"{wanted} is missing in the wheel"
assert any(name.startswith("kster/smoothing/universal/") and name.endswith(".safetensors") for name in names)
assert any(name.endswith("licenses/LICENSE") for name in names), "the licence is missing in the wheel"
for forbidden in ("experiments/", "tests/", "models/"):
    assert not any(name.startswith(forbidden) for name in names), f"{forbidden} is in the wheel"
PYTHON

python3 -m venv "$place/empty"
"$place/empty/bin/pip" install --quiet --disable-pip-version-check -c constraints.txt "$(ls "$place"/dist/*.whl)[server]" 2>"$place/pip.log" ||
    { cat "$place/pip.log"; exit 1; }
root=$PWD
cd "$place"
kster=$place/empty/bin/kster
"$kster" --version
"$kster" memory create m --model "$root/models/en-de"
"$kster" memory add m "Empty the knock box." "Den Abschlagbehälter leeren."
answer=$(echo "Empty the knock box." | "$kster" translate --memory m)
[ "$answer" = "Den Abschlagbehälter leeren." ] || { echo "translated as: $answer"; exit 1; }
export KSTER_MODEL_HOME=$root/models  # as docs/install.md has it
"$kster" models list
echo "Open the lid." | "$kster" translate --model en-de
"$place/empty/bin/python" - <<'PYTHON'
from kster import Translator
import kster.server.app
with Translator(memory="m") as translator:
    assert str(translator.translate("Empty the knock box.")) == "Den Abschlagbehälter leeren."
PYTHON
echo "the wheel works in an empty environment"
