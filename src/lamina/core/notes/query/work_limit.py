"""Limits the amount of work that a query may do.

Law: every loop whose length depends on the query's text or a note is counted here, so that every
query ends, at the same point on every machine.
"""

from lamina.errors import QueryError

MAX_STEPS = 3_000_000
MAX_ROWS = 100_000


class RowError(Exception):
    """Raised if an expression has no value for a row; the row is omitted, as in Dataview."""


class WorkLimit:
    """The remaining work that a query may do."""

    def __init__(self, steps: int = MAX_STEPS) -> None:
        self._left = steps

    def spend(self, steps: int) -> None:
        """Count some work.

        Raises:
            QueryError: that was too much.
        """
        self._left -= steps
        if self._left < 0:
            raise QueryError(1, 1, f"this query takes more than {MAX_STEPS:,} steps; narrow it")

    def check_rows(self, rows: int) -> None:
        """Raise `QueryError` if there are too many rows."""
        if rows > MAX_ROWS:
            raise QueryError(1, 1, f"this query makes more than {MAX_ROWS:,} rows; narrow it")
