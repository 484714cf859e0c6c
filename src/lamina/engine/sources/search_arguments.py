"""What a program asks a search for, checked before anything is read or searched.

Law: a value that a search does not take is an error with that value and what it takes."""

from lamina.errors import UsageError


def check_query(query: object, what: str) -> None:
    """Raises:
    UsageError: it is no text, or an empty one.
    """
    if not isinstance(query, str):
        raise UsageError(f"the {what} is {query!r}: it takes a text")
    if not query.strip():
        raise UsageError(f"the {what} is empty")


def check_top(top: object, what: str) -> None:
    """Raises:
    UsageError: it is no whole number, or none from 1 on.
    """
    if not isinstance(top, int) or isinstance(top, bool):
        raise UsageError(f"top is {top!r}: it takes a whole number, how many {what} are wanted")
    if top < 1:
        raise UsageError(
            f"top is {top!r}: at least one {what.removesuffix('s')} has to be asked for"
        )
