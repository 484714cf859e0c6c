"""Session ids as names of files, and back."""

import hashlib
from pathlib import Path
from urllib.parse import quote, unquote

from lamina.core.journal import read_journal
from lamina.core.values.entry import SessionEntry

SUFFIX = ".jsonl"
# File systems allow 255 bytes in a name; the rest is for files beside the journal.
LONGEST_NAME = 160

# Names that Windows reserves for devices, with any suffix.
_DEVICES = {"con", "prn", "aux", "nul", *(f"{n}{i}" for n in ("com", "lpt") for i in range(10))}


def file_stem(session: str) -> str:
    """A file name for any session id."""
    stem = quote(session, safe=" !,@+()", errors="surrogatepass")
    if stem.startswith((".", " ")) or stem.endswith((".", " ")) or not stem:
        stem = f"%{stem}"
    if stem.partition(".")[0].casefold() in _DEVICES:
        stem = f"%{stem}"
    digest = hashlib.sha256(session.encode("utf-8", "surrogatepass")).hexdigest()
    if len(stem) <= LONGEST_NAME and session != session.lower():
        # Where case does not count, "A" and "a" must not be the same file.
        stem = f"{stem}={digest[:8]}"
    if len(stem) > LONGEST_NAME:
        # Any other equals sign is escaped.
        stem = f"{stem[: LONGEST_NAME - 17]}={digest[:16]}"
    return stem


def session_of(path: Path) -> str:
    """The session id of a file, from its name or, if the id was too long for that, its header."""
    stem = path.name.removesuffix(SUFFIX)
    name = unquote(stem.partition("=")[0])
    plain = unquote(stem.partition("=")[0].removeprefix("%"))
    for guess in (name, name.removeprefix("%"), plain):
        if file_stem(guess) == stem:
            return guess
    with path.open("rb") as file:
        first = file.readline()
    header = next(iter(read_journal(first, name).entries.values()))
    return header.session if isinstance(header, SessionEntry) else name
