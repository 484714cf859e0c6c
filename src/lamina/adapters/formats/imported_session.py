"""The outcome of an import: entries, the bytes of images, and the problems on the way."""

from msgspec import Struct

from lamina.core.values.entry import Entry


class ImportProblem(Struct, frozen=True, kw_only=True):
    """Something that could not be taken as it was. `line` counts from 1; None if it is about
    none. `what` is a fixed word, for programs: of the file (`torn`, `unreadable`, `glued`,
    `not_an_object`, `nul_bytes`, `encoding`, `mended`), of the tree (`missing_parent`, `cycle`,
    `duplicate`, `no_header`), of calls (`orphan_result`, `missing_result`, `unpaired`), of what is
    kept as data (`unknown_type`, `unknown_role`, `unknown_block`, `unreadable_patch`, `refused`),
    and others."""

    line: int | None
    what: str
    detail: str


class ImportedSession(Struct, frozen=True, kw_only=True):
    """A foreign session as entries of ours, header first; a parent stands before its children.

    `leaf` is where the session goes on. `lines` says which entry a line went into: what is neither
    there nor in `problems` was blank."""

    entries: tuple[Entry, ...]
    problems: tuple[ImportProblem, ...]
    leaf: str
    blobs: tuple[bytes, ...] = ()
    lines: tuple[tuple[int, str], ...] = ()
