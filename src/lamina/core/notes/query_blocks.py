"""The queries of a note: blocks of code that are queries, and code within its text.

Law: nothing is run here. Scripts are found, so that whoever reads a note can say that they were
left out.
"""

import re
from collections.abc import Iterator, Sequence
from typing import Literal

from lamina.core.notes.outline import CodeBlock
from lamina.core.values.note import NoteQuery

QUERY_INFOS: dict[str, Literal["block", "search", "script"]] = {
    "lamina-query": "block",
    "dataview": "block",
    "query": "search",
    "dataviewjs": "script",
}
MOST_INLINE = 200
_QUOTE = re.compile(r"[ \t]*>[ \t]?")
# Code that begins with `=` and goes on like an expression; `==` and `=>` are code about code.
_INLINE = re.compile(r"(?<!`)`(?P<mark>\$?=)(?P<text>(?![=>])[^`\n]*[^`\s][^`\n]*)`(?!`)")


def find_queries(
    lines: Sequence[str], blocks: Sequence[CodeBlock], body: str
) -> tuple[NoteQuery, ...]:
    """The queries of a text: its blocks in order, then those within its sentences."""
    queries = list(_find_blocks(lines, blocks))
    if "`=" in body or "`$=" in body:
        inline, scripts = _find_inline(lines, blocks)
        if inline:
            queries.append(NoteQuery("inline", "\n".join(inline)))
        queries += [NoteQuery("script", text) for text in scripts]
    return tuple(queries)


def _find_blocks(lines: Sequence[str], blocks: Sequence[CodeBlock]) -> Iterator[NoteQuery]:
    for block in blocks:
        kind = QUERY_INFOS.get(block.info.lower().strip())
        if kind is not None:
            inside = lines[block.line + 1 : block.end - block.is_closed]
            # In a quote or a callout every line begins with a mark.
            for _ in range(_count_quotes(lines[block.line])):
                inside = [_QUOTE.sub("", line, count=1) for line in inside]
            yield NoteQuery(kind, "\n".join(inside))


def _find_inline(
    lines: Sequence[str], blocks: Sequence[CodeBlock]
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Expressions and scripts within sentences, each once, as they are spelled."""
    in_blocks = {at for block in blocks for at in range(block.line, block.end)}
    spellings: dict[str, list[str]] = {"=": [], "$=": []}
    for at, line in enumerate(lines):
        if ("`=" not in line and "`$=" not in line) or at in in_blocks:
            continue
        for match in _INLINE.finditer(line):
            spellings[match["mark"]].append(f"{match['mark']} {match['text'].strip()}")
    inline, scripts = (tuple(dict.fromkeys(found))[:MOST_INLINE] for found in spellings.values())
    return inline, scripts


def _count_quotes(line: str) -> int:
    return line[: len(line) - len(line.lstrip("> \t"))].count(">")
