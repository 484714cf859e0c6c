"""The result of a query over notes, before it is rendered."""

from typing import Any, Literal

from msgspec import Struct


class QueryRow(Struct, frozen=True):
    """A note that the query means, and what is shown of it, column by column."""

    path: str
    cells: tuple[Any, ...]


class QueryGroup(Struct, frozen=True, kw_only=True):
    """Notes that have one value in common. `size` counts those that are not shown, too."""

    key: Any = None
    size: int
    rows: tuple[QueryRow, ...]


class QueryResult(Struct, frozen=True, kw_only=True):
    """The result of a query. `heads` are the columns' names, without that of the group; without
    GROUP BY all is one group. `fits` counts all notes that the query means."""

    shape: Literal["list", "table"]
    with_id: bool
    heads: tuple[str, ...]
    group_head: str | None = None
    groups: tuple[QueryGroup, ...] = ()
    fits: int = 0
    warnings: tuple[str, ...] = ()
