"""The result of an import: entries, the bytes of images, and the problems found."""

from msgspec import Struct

from lamina.core.values.entry import Entry


class ImportProblem(Struct, frozen=True, kw_only=True):
    """Something that could not be imported unchanged. `line` counts from 1; None if it concerns
    none. `what` is a fixed word, for programs: of the file (`torn`, `unreadable`, `glued`,
    `not_an_object`, `nul_bytes`, `encoding`, `mended`), of the tree (`missing_parent`, `cycle`,
    `duplicate`, `no_header`), of calls (`orphan_result`, `missing_result`, `unpaired`), of what is
    kept as data (`unknown_type`, `unknown_role`, `unknown_block`, `unreadable_patch`, `refused`),
    and others."""

    line: int | None
    what: str
    detail: str


class ImportedSession(Struct, frozen=True, kw_only=True):
    """A foreign session as our entries, header first and parents before children.

    The session continues at `leaf`. `lines` maps lines to entries: a line that is neither there nor
    in `problems` was blank."""

    entries: tuple[Entry, ...]
    problems: tuple[ImportProblem, ...]
    leaf: str
    blobs: tuple[bytes, ...] = ()
    lines: tuple[tuple[int, str], ...] = ()
