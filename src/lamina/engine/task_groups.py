"""Provides task groups whose errors a caller can catch.

Law: callers catch the error itself, never an exception group. This module does not depend on the
rest of the package.

Private: see `lamina` for what is public.
"""

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager

import anyio
from anyio.abc import TaskGroup


@contextmanager
def single_errors() -> Iterator[None]:
    """Raise a task group's only error without the group around it."""
    try:
        yield
    except BaseExceptionGroup as group:
        error: BaseException = group
        while isinstance(error, BaseExceptionGroup) and len(error.exceptions) == 1:
            error = error.exceptions[0]
        raise error from None


@asynccontextmanager
async def patient_group() -> AsyncIterator[TaskGroup]:
    """Yield a task group that lets its tasks finish before it raises an error from its own
    block.
    """
    failure: Exception | None = None
    with single_errors():
        async with anyio.create_task_group() as group:
            try:
                yield group
            except Exception as error:  # noqa: BLE001 - raised when the tasks are done
                failure = error
    if failure is not None:
        raise failure
