"""The words of today's renderer, and sessions as an earlier one worded and ordered them."""

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from lamina.core import text
from lamina.core.assembly import boundary
from lamina.core.journal import state
from lamina.core.text.wording import wording
from lamina.core.values import entry
from lamina.core.values.entry import RENDERER
from lamina.core.values.item import Item, Shape

WORDS = wording(RENDERER)


def render_item(item: Item, shape: Shape = "attached") -> str:
    """An item as new sessions show it."""
    return text.render_item(item, WORDS, shape)


@contextmanager
def renderer(number: int) -> Iterator[None]:
    """In here new sessions begin with this renderer, and boundaries lead to it."""
    with pytest.MonkeyPatch.context() as patch:
        for module in (entry, state, boundary):
            patch.setattr(module, "RENDERER", number)
        yield
