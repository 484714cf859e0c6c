"""Describes damage in a journal with its location: everything that could not be read is
reported."""

from typing import Literal

from msgspec import Struct

DamageKind = Literal[
    "bad_header", "checksum", "no_checksum", "torn", "nul_bytes", "not_an_entry", "unknown_type",
    "duplicate", "conflict", "missing_parent", "missing_entries", "incomplete_write",
    "no_final_newline", "no_line_break", "line_endings", "not_applicable", "lost_results",
    "lost_reply", "lost_item", "lost_question", "lost_setting", "bad_page",
]  # fmt: skip


class Damage(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One defect. `line` counts from 1; `offset` and `length` are in bytes. For database rows,
    `row` also counts from 1, and the other fields give the position in an export: a journal records
    the same position, however it is stored."""

    kind: DamageKind
    detail: str
    line: int = 0
    offset: int = 0
    length: int = 0
    row: int = 0

    def __str__(self) -> str:
        place = f"line {self.line:,}, byte {self.offset:,}: " if self.line else ""
        return f"{place}{self.detail}"
