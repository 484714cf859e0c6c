"""Defines the result of an import: entries, image bytes, and the problems found."""

from msgspec import Struct

from lamina.core.values.entry import Entry


class ImportProblem(Struct, frozen=True, kw_only=True):
    """Content that could not be imported unchanged. `line` counts from 1, or is None if no line is
    concerned. `what` is a fixed code for programs: about the file (`torn`, `unreadable`, `glued`,
    `not_an_object`, `nul_bytes`, `encoding`, `mended`), the tree (`missing_parent`, `cycle`,
    `duplicate`, `no_header`), calls (`orphan_result`, `missing_result`, `unpaired`), content kept
    as data (`unknown_type`, `unknown_role`, `unknown_block`, `unreadable_patch`, `refused`), and
    others."""

    line: int | None
    what: str
    detail: str


class ImportedSession(Struct, frozen=True, kw_only=True):
    """A foreign session as our entries, header first and parents before children.

    The session continues at `leaf`. `lines` maps lines to entries; lines in neither `lines` nor
    `problems` were blank."""

    entries: tuple[Entry, ...]
    problems: tuple[ImportProblem, ...]
    leaf: str
    blobs: tuple[bytes, ...] = ()
    lines: tuple[tuple[int, str], ...] = ()
