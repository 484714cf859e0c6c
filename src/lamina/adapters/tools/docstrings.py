"""Descriptions of a function and its parameters from its docstring.

Law: only the first paragraph and an `Args:` section are read; the rest is for people."""

import inspect
import re

_SECTION = re.compile(r"(Args|Arguments|Parameters):\s*")
_PARAMETER = re.compile(r"\*{0,2}(\w+)\s*(?:\([^)]*\))?\s*:\s*(.*)")


def first_paragraph(doc: str | None) -> str:
    """The first paragraph, in one line."""
    text = inspect.cleandoc(doc or "")
    paragraph = text.split("\n\n", 1)[0]
    lines = [line.strip() for line in paragraph.splitlines()]
    # A docstring may begin with its arguments.
    return "" if lines and _SECTION.fullmatch(lines[0]) else " ".join(lines).strip()


def parameter_texts(doc: str | None) -> dict[str, str]:
    """The texts of the `Args:` section, by parameter."""
    lines = inspect.cleandoc(doc or "").splitlines()
    start = next((at for at, line in enumerate(lines) if _SECTION.fullmatch(line)), None)
    if start is None:
        return {}
    words_by_name: dict[str, list[str]] = {}
    name, depth = "", 0
    for line in lines[start + 1 :]:
        indent = len(line) - len(line.lstrip())
        if line.strip() and not indent:
            break  # the next section
        depth = depth or indent
        match = _PARAMETER.fullmatch(line.strip()) if indent == depth else None
        if match:
            name = match[1]
            words_by_name[name] = [match[2]]
        elif name and line.strip():
            words_by_name[name].append(line.strip())
    return {name: " ".join(words).strip() for name, words in words_by_name.items()}
