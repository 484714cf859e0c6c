"""A pause for the garbage collector.

Private: see `lamina` for what is public.
"""

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def paused_collection() -> Iterator[None]:
    """Turns garbage collection off while many objects are made that all stay: looking through
    hundreds of thousands of them again and again takes longer than making them."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()
