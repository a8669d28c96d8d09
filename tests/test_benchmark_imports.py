"""Benchmarks are run by hand and seldom; what they import must be there all the same."""

from __future__ import annotations

import ast
import importlib
from pathlib import Path

import pytest

FOLDER = Path(__file__).parents[1] / "benchmarks"
BESIDE = {path.stem: path for path in FOLDER.glob("*.py")}


def names_in(path: Path) -> set[str]:
    """What a file defines or imports at its top."""
    names = set()
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        match node:
            case ast.FunctionDef(name=name) | ast.ClassDef(name=name):
                names.add(name)
            case ast.ImportFrom(names=imported) | ast.Import(names=imported):
                names |= {alias.asname or alias.name for alias in imported}
            case ast.Assign(targets=targets):
                names |= {
                    own.id for target in targets for own in ast.walk(target) if isinstance(own, ast.Name)
                }
            case ast.AnnAssign(target=ast.Name(id=name)):
                names.add(name)
    return names


@pytest.mark.parametrize("path", BESIDE.values(), ids=lambda path: path.name)
def test_what_a_benchmark_imports_is_there(path: Path) -> None:
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if not isinstance(node, ast.ImportFrom) or node.module is None:
            continue
        wanted = {alias.name for alias in node.names}
        if node.module in BESIDE:
            assert wanted <= names_in(BESIDE[node.module]), node.module
        elif node.module.split(".")[0] == "kster":
            if node.module.startswith("kster.cluster"):
                pytest.importorskip("ray")
            module = importlib.import_module(node.module)
            for name in wanted:
                if not hasattr(module, name):
                    importlib.import_module(f"{node.module}.{name}")
