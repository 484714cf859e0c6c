"""What a function of queries is: how many values it takes, and which of them may be lists.

Law: a function that is given a list where it takes one value is called for every member of it, and
gives a list; of several lists the shortest counts.
"""

from collections.abc import Callable, Mapping
from datetime import datetime, tzinfo
from typing import Any, Protocol

from msgspec import Struct

from lamina.core.notes.query.values import PageLink, type_of
from lamina.core.notes.query.work_limit import RowError, WorkLimit


class QueryScope(Protocol):
    """What functions may ask of the notes that a query runs over."""

    limit: WorkLimit

    @property
    def zone(self) -> tzinfo | None:
        """The zone in which times are told."""
        ...

    def make_link(self, spelling: str) -> PageLink:
        """The link that `[[spelling]]` is in the note that holds the query."""
        ...

    def page_of(self, link: PageLink) -> Mapping[str, Any] | None:
        """The note that a link means, with its fields."""
        ...

    def day_of(self, link: PageLink) -> datetime | None:
        """The day that the note of a link is about."""
        ...


class QueryFunction(Struct, frozen=True):
    """A function that takes from `least` to `most` values; `by_member` are the places where it is
    called for each member of a list."""

    call: Callable[..., Any]
    least: int
    most: int
    by_member: tuple[int, ...] = ()


def call_function(name: str, function: QueryFunction, scope: QueryScope, values: list[Any]) -> Any:
    """The value of a function.

    Raises:
        RowError: it has none for these values.
    """
    lists = [at for at in function.by_member if at < len(values) and _is_list(values[at])]
    if not lists:
        try:
            return function.call(scope, *values)
        except NoSuchCall:
            kinds = ", ".join(map(type_of, values))
            raise RowError(f"{name}() does not take {kinds or 'nothing'}") from None
    size = min(len(values[at]) for at in lists)
    scope.limit.spend(size)
    return tuple(
        call_function(
            name, function, scope,
            [value[place] if at in lists else value for at, value in enumerate(values)],
        )
        for place in range(size)
    )  # fmt: skip


class NoSuchCall(Exception):
    """A function does not take such values."""


def _is_list(value: Any) -> bool:
    return isinstance(value, list | tuple)


def need(value: Any, *kinds: type) -> Any:
    """The value, if it is of one of these kinds.

    Raises:
        NoSuchCall: it is not.
    """
    if isinstance(value, kinds) and not (isinstance(value, bool) and bool not in kinds):
        return value
    raise NoSuchCall
