"""The result of a query over notes, before it is rendered."""

from typing import Any, Literal

from msgspec import Struct


class QueryRow(Struct, frozen=True):
    """A note that the query selects, and its cells, column by column."""

    path: str
    cells: tuple[Any, ...]


class QueryGroup(Struct, frozen=True, kw_only=True):
    """Notes with one value in common. `size` includes those that are not shown."""

    key: Any = None
    size: int
    rows: tuple[QueryRow, ...]


class QueryResult(Struct, frozen=True, kw_only=True):
    """The result of a query. `heads` are the columns' names, without the group's; without GROUP BY
    there is one group. `fits` counts all notes that the query selects."""

    shape: Literal["list", "table"]
    with_id: bool
    heads: tuple[str, ...]
    group_head: str | None = None
    groups: tuple[QueryGroup, ...] = ()
    fits: int = 0
    warnings: tuple[str, ...] = ()
