"""Finds `@path` imports in a text, as used in CLAUDE.md, and the text's code blocks. Pure.

Law: an `@path` in code is an example, not an import.
"""

import re
from collections.abc import Iterator

_FENCE = re.compile(r"\s*(?:[-*+]\s+|\d+[.)]\s+|>\s?)*(`{3,}|~{3,})(.*)")
_LIST = re.compile(r"\s*(?:[-*+]|\d+[.)])\s")
_TICKS = re.compile(r"`+")
_IMPORT = re.compile(r"(?<![\w@/.\\])@(?!@)((?:\\ |[^\s\\`])+)")
_COMMENT = re.compile(r"<!--.*?-->", re.DOTALL)
_TRAILING = ".,;:!?)]}>'\"*_"
# A path has a folder or a suffix; @someone and @angular/core do not count.
_PATH = re.compile(r"(?:\.{1,2}/|~/|/).+|.*[^/.]\.[A-Za-z0-9]{1,8}")


def find_imports(text: str) -> tuple[tuple[int, str], ...]:
    """Return the lines and paths of imports in order, each path once."""
    lines: dict[str, int] = {}
    for number, line in enumerate(_without_code(text).split("\n"), start=1):
        for match in _IMPORT.finditer(line):
            path = match[1].replace("\\ ", " ").rstrip(_TRAILING)
            if path:
                lines.setdefault(path, number)
    return tuple((line, path) for path, line in lines.items())


def imports_only(text: str) -> bool:
    """Check whether a text contains nothing but imports."""
    imports = find_imports(text)
    rest = _IMPORT.sub("", _COMMENT.sub("", text))
    return bool(imports) and not rest.strip() and all(looks_like_path(path) for _, path in imports)


def looks_like_path(path: str) -> bool:
    return bool(_PATH.fullmatch(path))


def _without_code(text: str) -> str:
    """Return the text with code blanked out, on the same lines."""
    paragraphs: list[list[str]] = [[]]
    for line, is_code in _lines(text):
        if is_code or not line.strip():
            paragraphs += [[""], []]
        else:
            paragraphs[-1].append(line)
    parts = [_without_spans("\n".join(paragraph)) for paragraph in paragraphs if paragraph]
    return "\n".join(parts)


def unclosed_fence(text: str) -> int | None:
    """Return the line, counted from 0, where an unclosed code block begins."""
    fence, began = "", None
    for number, line in enumerate(text.split("\n")):
        was, fence = fence, _fence_after(line, fence)
        if fence and not was:
            began = number
    return began if fence else None


def _fence_after(line: str, fence: str) -> str:
    """Return the fence of the code block open after a line; empty if none is."""
    match = _FENCE.match(line)
    if match is None:
        return fence
    if fence:
        closes = match[1].startswith(fence) and not match[2].strip()
        return "" if closes else fence
    # A backtick fence has no other backticks on its line: that would be a span.
    is_span = match[1][0] == "`" and "`" in match[2]
    return "" if is_span else match[1]


def _lines(text: str) -> Iterator[tuple[str, bool]]:
    """Yield each line, and whether fences or indentation make it code."""
    fence, in_list, after_blank = "", False, True
    for line in text.split("\n"):
        was, fence = fence, _fence_after(line, fence)
        if was or fence:
            yield line, True
            after_blank = False
            continue
        is_code = line.startswith(("    ", "\t")) and after_blank and not in_list
        yield line, is_code and bool(line.strip())
        if line.strip():
            in_list = bool(_LIST.match(line)) or (in_list and line[0] in " \t")
        after_blank = not line.strip() or is_code


def _without_spans(text: str) -> str:
    """Blank out the text between backtick runs of equal length."""
    runs = list(_TICKS.finditer(text))
    later: dict[int, list[int]] = {}
    for at in range(len(runs) - 1, -1, -1):
        later.setdefault(len(runs[at][0]), []).append(at)
    pieces, end, at = [], 0, 0
    while at < len(runs):
        same = later[len(runs[at][0])]
        while same and same[-1] <= at:
            same.pop()
        if not same:
            at += 1
            continue
        start, close = runs[at].start(), runs[same[-1]].end()
        pieces += [text[end:start], re.sub(r"[^\n]", " ", text[start:close])]
        end, at = close, same[-1] + 1
    return "".join((*pieces, text[end:]))
