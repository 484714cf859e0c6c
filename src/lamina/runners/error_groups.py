"""Errors of task groups."""

from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def single_errors() -> Iterator[None]:
    """Lets a task group's only error out as itself: callers catch what went wrong, not groups."""
    try:
        yield
    except BaseExceptionGroup as group:
        error: BaseException = group
        while isinstance(error, BaseExceptionGroup) and len(error.exceptions) == 1:
            error = error.exceptions[0]
        raise error from None
