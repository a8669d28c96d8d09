"""No module needs another that needs it: neither at run time, nor in a function, nor for its types."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1] / "src"
# The ways up that `pyproject.toml` allows import-linter, too.
ALLOWED = {
    ("kster.memory.memory", "kster.smoothing"),
    ("kster.smoothing.fitting.fit", "kster.translation.length"),
    ("kster.smoothing.fitting.fit", "kster.translation.calibration"),
}


def _modules(root: Path) -> dict[str, Path]:
    named = {path: path.relative_to(root).with_suffix("").parts for path in root.glob("kster/**/*.py")}
    return {".".join(parts).removesuffix(".__init__"): path for path, parts in named.items()}


def _imported(tree: ast.AST, modules: dict[str, Path]) -> Iterator[str]:
    """The project's modules that a module names anywhere in an import."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name in modules)
        elif isinstance(node, ast.ImportFrom) and node.module in modules:
            for alias in node.names:
                inner = f"{node.module}.{alias.name}"
                yield inner if inner in modules else node.module


def imports(root: Path) -> dict[str, set[str]]:
    modules = _modules(root)
    found = {name: set(_imported(ast.parse(path.read_text()), modules)) for name, path in modules.items()}
    return {
        name: {other for other in others if not any(name == a and other.startswith(b) for a, b in ALLOWED)}
        for name, others in found.items()
    }


def test_no_module_imports_one_that_imports_it() -> None:
    try:
        TopologicalSorter(imports(ROOT)).prepare()
    except CycleError as error:
        pytest.fail(" → ".join(error.args[1]))


def test_a_cycle_that_only_types_make_is_found(tmp_path: Path) -> None:
    package = tmp_path / "kster"
    package.mkdir()
    (package / "one.py").write_text("from kster.two import Two\n")
    (package / "two.py").write_text("if TYPE_CHECKING:\n    from kster.one import One\n")
    (package / "__init__.py").touch()
    with pytest.raises(CycleError):
        TopologicalSorter(imports(tmp_path)).prepare()
