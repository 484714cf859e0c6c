"""Words that a caller gives by name.

Law: one that nobody knows is refused with the known one that is nearest to it.
"""

from collections.abc import Iterable
from difflib import get_close_matches


def require_known(function: str, known: Iterable[str], given: Iterable[str]) -> None:
    """Refuses words that a function does not take.

    Raises:
        TypeError: one of them, with what was probably meant.
    """
    words = tuple(known)
    for word in given:
        if word not in words:
            near = get_close_matches(word, words, n=1)
            hint = f"did you mean {near[0]!r}?" if near else f"it takes {', '.join(words)}"
            raise TypeError(f"{function}() got an unexpected keyword argument {word!r}; {hint}")
