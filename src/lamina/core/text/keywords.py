"""Checks the names of keyword arguments passed by a caller.

Law: an unknown word is refused with the closest known one.
"""

from collections.abc import Iterable
from difflib import get_close_matches


def require_known(function: str, known: Iterable[str], given: Iterable[str]) -> None:
    """Refuse words that a function does not accept.

    Raises:
        TypeError: one of them, with what was probably meant.
    """
    words = tuple(known)
    for word in given:
        if word not in words:
            near = get_close_matches(word, words, n=1)
            hint = f"did you mean {near[0]!r}?" if near else f"it takes {', '.join(words)}"
            raise TypeError(f"{function}() got an unexpected keyword argument {word!r}; {hint}")
