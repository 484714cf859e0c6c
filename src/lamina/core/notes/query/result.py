"""The result of a query over notes, before it is rendered."""

from typing import Any, Literal

from msgspec import Struct

from lamina.core.notes.query.pages import Item
from lamina.core.notes.query.syntax import Shape


class QueryRow(Struct, frozen=True):
    """A row of a result: what it is called (a note's path or the value of a group), its cells
    column by column, and the rows of the group, if it is one. `size` is how many these are, with
    those that are not shown."""

    id: Any
    cells: tuple[Any, ...] = ()
    rows: "tuple[QueryRow, ...] | None" = None
    item: Item | None = None
    size: int = 0


class QueryResult(Struct, frozen=True, kw_only=True):
    """The result of a query. `heads` are the columns' names; `id_head` what stands above the first
    of them. `unit` is what a row is; `fits` counts all rows, `failed` those with nothing to show.
    `warnings` say what a person should know. `clock` is what the result holds for: any time, a
    day, or a minute."""

    shape: Shape
    with_id: bool
    heads: tuple[str, ...]
    id_head: str
    rows: tuple[QueryRow, ...] = ()
    unit: Literal["note", "task", "group", "row"] = "note"
    fits: int = 0
    failed: int = 0
    clock: Literal["any", "day", "minute"] = "any"
    warnings: tuple[str, ...] = ()
