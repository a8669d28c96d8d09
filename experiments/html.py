"""One page that holds everything: tables, figures and how they were made; it loads nothing from elsewhere."""

from __future__ import annotations

import re
from collections.abc import Sequence
from html import escape

from experiments.origin import in_words
from experiments.plots import svg_text
from experiments.sections import Section, TextTable

_STYLE = """
body { font: 15px/1.5 system-ui, sans-serif; max-width: 72rem; margin: 2rem auto; padding: 0 1rem;
       color: #222; background: #fff }
h1 { font-size: 1.6rem } h2 { margin-top: 2.5rem; border-bottom: 1px solid #ccc }
h3 { margin: 1.5rem 0 .3rem }
.wide { overflow-x: auto } table { border-collapse: collapse; font-variant-numeric: tabular-nums }
th, td { padding: .25rem .6rem; border-bottom: 1px solid #ddd; text-align: right; white-space: nowrap }
th:first-child, td:first-child { text-align: left; position: sticky; left: 0; background: #fff;
       border-right: 1px solid #ddd } small, li { color: #555; font-size: .85rem }
figure { margin: 1rem 0 } svg { max-width: 100%; height: auto }
code { font-size: .8rem; overflow-wrap: anywhere }
"""

_HOW_TO_READ = (
    "In brackets: the paper's figure for the same cell, where it gives a number; some of its results are "
    "only drawn. Full: on all of the data; quick: on a sample that shows no more than that everything works. "
    "Tables that are wider than the page can be moved sideways."
)


def page(title: str, experiments: Sequence[tuple[str, str, Sequence[Section]]]) -> str:
    """experiments: (name, what it shows, its sections)."""
    body = [f"<h1>{escape(title)}</h1>", f"<p>{escape(_HOW_TO_READ)}</p>"]
    if len(experiments) > 1:
        links = (f'<a href="#{escape(name)}">{escape(name)}</a>' for name, _, _ in experiments)
        body.append(f"<p>{' · '.join(links)}</p>")
    for name, summary, sections in experiments:
        body.append(f'<h2 id="{escape(name)}">{escape(name)}</h2><p>{escape(summary)}</p>')
        for section in sections:
            command, made = section.origin["command"], in_words(section.origin)
            body.append(f"<p><code>{escape(command)}</code><br><small>{escape(made)}</small></p>")
            body += [_table(table) for table in section.tables]
            body += [f"<figure>{svg_text(figure)}</figure>" for figure in section.figures.values()]
    content = "\n".join(body)
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{escape(title)}</title><style>{_STYLE}</style></head>\n<body>\n{content}\n</body></html>\n"
    )


def _table(table: TextTable) -> str:
    heading, *rows = table.rows
    head = "".join(f"<th>{escape(cell)}</th>" for cell in heading)
    body = "".join("<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>" for row in rows)
    notes = "".join(f"<li>{_with_code(note)}</li>" for note in table.notes)
    return (
        f'<h3>{escape(table.title)}</h3><div class="wide"><table><thead><tr>{head}</tr></thead>'
        f"<tbody>{body}</tbody></table></div><ul>{notes}</ul>"
    )


def _with_code(note: str) -> str:
    """Notes are written as in Markdown: what stands between backticks is code."""
    return re.sub(r"`([^`]+)`", r"<code>\1</code>", escape(note))
