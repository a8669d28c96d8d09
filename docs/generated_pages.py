"""Reference pages made from the code while the site is built: `<!-- generated: NAME -->` is replaced."""

from __future__ import annotations

import re
from typing import Any

MARK = re.compile(r"<!-- generated: (\w+) -->")


def on_page_markdown(markdown: str, **_: Any) -> str:
    """Called by MkDocs for every page."""
    return MARK.sub(lambda found: GENERATORS[found[1]](), markdown)


def command_line() -> str:
    """Every command with its arguments and options, as `--help` tells them."""
    import typer
    from typer.cli import get_docs_for_click

    from kster.cli.app import app

    command = typer.main.get_command(app)
    text = get_docs_for_click(obj=command, ctx=typer.Context(command), name="kster")
    return text.split("\n", 1)[1]  # the page has its own title


def http_routes() -> str:
    """Every route of the OpenAPI description, by tag."""
    from kster.server.app import create_app
    from kster.server.settings import ServerSettings
    from kster.server.work.engine import Engine

    engine = Engine.__new__(Engine)  # nothing is served: the routes are only listed
    description = create_app(ServerSettings(), engine).openapi()
    by_tag: dict[str, list[str]] = {}
    for path, methods in description["paths"].items():
        for method, route in methods.items():
            text = (
                (route.get("description") or route.get("summary") or "").split("\n\n")[0].replace("\n", " ")
            )
            row = f"| `{method.upper()} {path}` | {text.replace('|', chr(92) + '|')} |"
            by_tag.setdefault(", ".join(route.get("tags", ["LibreTranslate"])), []).append(row)
    return "\n".join(
        "\n".join([f"\n## {tag}\n", "| route | what it does |", "|---|---|", *rows])
        for tag, rows in by_tag.items()
    )


def server_settings() -> str:
    """Every setting of the server, with its default and what it means."""
    from kster.server.settings import ServerSettings

    rows = ["| setting | default | meaning |", "|---|---|---|"]
    for name, field in ServerSettings.model_fields.items():
        meaning = " ".join((field.description or "").split())
        rows.append(f"| `{name}` | `{field.get_default(call_default_factory=True)}` | {meaning} |")
    return "\n".join(rows)


GENERATORS = {"command_line": command_line, "http_routes": http_routes, "server_settings": server_settings}
