"""Extracts the text of a PDF, page by page.

Laws: a PDF cannot block or crash this process or fill its memory: it is read in another process,
with limits on time and memory and without this process's environment. The same bytes yield the same
text, unless time runs out, which is reported. Text on a page cannot fake the start of another page.
"""

import importlib.util
import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

from msgspec import Struct

from lamina.adapters.files.extras import install_hint
from lamina.adapters.files.paths import PathRefused
from lamina.core.text.characters import fold_text

MAX_PAGES = 1_000
MAX_CHARACTERS = 2_000_000
MAX_SECONDS = 30.0
_MEGABYTES = 1_024
_MAX_TITLE = 200
_CHILD = Path(__file__).with_name("pdf_child.py")
# The environment variables that a process needs to start, without keys and tokens.
_ENVIRONMENT = ("PATH", "SYSTEMROOT", "LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH", "TMPDIR", "TEMP")
# The library's output for a hyphen at the end of a line, and lone surrogates.
_HYPHENS = re.compile(r"[\x02\ufffe]")
_NO_TEXT = re.compile(r"[\x00\ud800-\udfff\uffff]")
_LIKE_OURS = re.compile(r"\W*page\W+\d", re.IGNORECASE)


class PdfText(Struct, frozen=True, kw_only=True):
    """The text of a PDF: its title, if any, and its pages, each below a separator line."""

    title: str = ""
    text: str
    pages: int
    warnings: tuple[str, ...] = ()


class _ChildOutput(Struct, frozen=True, kw_only=True):
    """The other process's exit status and output."""

    lines: tuple[dict[str, Any], ...]
    timed_out: bool = False
    crashed: bool = False


def read_pdf(
    data: bytes,
    *,
    max_pages: int = MAX_PAGES,
    max_characters: int = MAX_CHARACTERS,
    max_seconds: float = MAX_SECONDS,
) -> PdfText:
    """Return the text of the PDF in `data`. Blocks: call it in a thread.

    Raises:
        PathRefused: it is locked or damaged, has no text, or no reader is installed.
    """
    output = _run(data, max_pages, max_characters, max_seconds)
    first = output.lines[0] if output.lines else {}
    if "pages" not in first:
        raise PathRefused("unreadable", _explain_refusal(first, output, max_seconds))
    pages = [line for line in output.lines if "page" in line]
    texts = {line["page"]: _clean(line["text"]) for line in pages}
    if not any(text.strip() for text in texts.values()):
        detail = _say_no_text(first["pages"], len(texts), output, max_seconds)
        raise PathRefused("unreadable", detail)
    return PdfText(
        title=" ".join(_clean(first["title"] or "").split())[:_MAX_TITLE],
        text="\n\n".join(f"--- page {number} ---\n{text}" for number, text in texts.items()),
        pages=first["pages"],
        warnings=tuple(_warn(output, first["pages"], max_pages, max_characters, max_seconds)),
    )


def _run(data: bytes, max_pages: int, max_characters: int, max_seconds: float) -> _ChildOutput:
    spec = importlib.util.find_spec("pypdfium2")
    if spec is None or not spec.origin:
        hint = install_hint("pdf")
        raise PathRefused("unreadable", f"PDFs are read with pypdfium2, which is not here: {hint}")
    place = str(Path(spec.origin).parent.parent)
    limits = (max_pages, max_characters, _MEGABYTES, int(max_seconds) + 1)
    # Isolated (-I), without loading site packages (-S): faster, and less code to run.
    command = [sys.executable, "-I", "-S", str(_CHILD), place, *map(str, limits)]
    environment = {name: os.environ[name] for name in _ENVIRONMENT if name in os.environ}
    try:
        process = subprocess.run(
            command, input=data, capture_output=True, timeout=max_seconds, env=environment
        )
    except subprocess.TimeoutExpired as error:
        return _ChildOutput(lines=_lines(error.output or b""), timed_out=True)
    except OSError as error:
        problem = f"no process to read it in could be started: {error.strerror}"
        raise PathRefused("unreadable", problem) from None
    return _ChildOutput(lines=_lines(process.stdout), crashed=process.returncode != 0)


def _lines(output: bytes) -> tuple[dict[str, Any], ...]:
    """Return the output's complete lines; the last one may have been cut off."""
    whole, _, _ = output.rpartition(b"\n")
    return tuple(json.loads(line) for line in whole.splitlines())


def _clean(text: str) -> str:
    text = _HYPHENS.sub("-", text.replace("\r\n", "\n").replace("\r", "\n"))
    lines = _NO_TEXT.sub("\ufffd", text).split("\n")
    return "\n".join(f"\\{line}" if _LIKE_OURS.match(fold_text(line)) else line for line in lines)


def _explain_refusal(first: dict[str, Any], output: _ChildOutput, max_seconds: float) -> str:
    if first.get("failed") == "locked":
        return "it is encrypted and asks for a password; attach a copy without one"
    if output.timed_out:
        return f"it could not be read within {max_seconds:g} seconds"
    if output.crashed:
        return "it is damaged, or made to do harm: its reader crashed"
    return "it is damaged, or no PDF"


def _say_no_text(pages: int, count: int, output: _ChildOutput, max_seconds: float) -> str:
    if output.timed_out:
        return f"it could not be read within {max_seconds:g} seconds"
    if output.crashed or not count:
        return "it is damaged: none of its pages could be read"
    several = f"none of its {pages:,} pages has" if pages > 1 else "its page has no"
    return f"{several} text; it seems to be scanned"


def _warn(
    output: _ChildOutput, pages: int, max_pages: int, max_characters: int, max_seconds: float
) -> list[str]:
    lines = [line for line in output.lines if "page" in line]
    last = lines[-1]["page"]
    warnings = []
    numbers = [line["damaged"] for line in output.lines if "damaged" in line]
    if numbers:
        listing = ", ".join(map(str, numbers[:5])) + (", ..." if len(numbers) > 5 else "")
        warnings.append(f"pages that are damaged are left out: {listing}")
    empty = sum(not line["text"].strip() for line in lines)
    if empty:
        warnings.append(f"{empty:,} of {pages:,} pages have no text; they may be scanned")
    if output.timed_out or output.crashed:
        how = f"time ran out after {max_seconds:g} seconds" if output.timed_out else "it crashed"
        warnings.append(f"read up to page {last:,} of {pages:,}: {how}")
    elif any(line["cut"] for line in lines) or (last < min(pages, max_pages) and not numbers):
        warnings.append(f"read up to page {last:,} of {pages:,}: {max_characters:,} characters")
    elif pages > max_pages:
        warnings.append(f"only the first {max_pages:,} of {pages:,} pages are read")
    return warnings
