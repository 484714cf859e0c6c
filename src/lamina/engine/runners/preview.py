"""A question as a runner would send it, and not sent.

Law: no model is asked and no tool is run; so of a planned question only the request for the plan
can be shown.
"""

from typing import Any, NoReturn

from msgspec import Struct

from lamina.core.ledger import CostRange
from lamina.core.values.note import NoteSearchResult
from lamina.core.values.prompt import Prompt
from lamina.core.values.request import LeftOut
from lamina.core.values.settings import Target
from lamina.engine.session.turn import Turn
from lamina.errors import UsageError


class Preview(Struct, frozen=True, kw_only=True):
    """A turn that was prepared. `search_result` is what a search brought to it."""

    turn: Turn
    search_result: NoteSearchResult | None = None
    warnings: tuple[str, ...] = ()


class PlanPreview(Struct, frozen=True, kw_only=True):
    """The request for a plan; `body` is what goes over the wire."""

    target: Target
    prompt: Prompt
    body: dict[str, Any]
    left_out: tuple[LeftOut, ...] = ()
    warnings: tuple[str, ...] = ()
    # What it may cost; None if nobody knows.
    cost_range: CostRange | None = None


class NoProviders:
    """Providers for a runner that only previews."""

    async def provider(self, target: Target) -> NoReturn:
        raise UsageError(f"this is a preview: nothing is sent to {target.name}")
