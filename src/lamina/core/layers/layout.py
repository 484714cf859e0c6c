"""Defines the layout of an envelope: everything that determines it, apart from the envelope
itself."""

from collections.abc import Iterable

from msgspec import Struct

from lamina.core.journal import State, known_renderer, renderer_in
from lamina.core.text.wording import Wording, wording
from lamina.core.values.entry import RENDERER, RequestEntry, SessionEntry
from lamina.core.values.envelope import SystemOrder, SystemPart, order_parts
from lamina.core.values.settings import Promotion

# On these wires, thinking is sent back to the model that wrote it.
_THINKING_WIRES = ("anthropic", "gemini")
# On this wire a result can load tools.
_LOADING_WIRE = "anthropic"


class Layout(Struct, frozen=True, kw_only=True):
    """The conditions that determine the layout of an envelope, apart from the envelope itself."""

    promotion: Promotion = "lazy"
    # Thinking is only sent back to the vendor that signed it, and to the model that wrote it.
    wire: str = "openai"
    model: str = ""
    renderer: int = RENDERER
    # Whether the model binds thinking to what preceded it, and refuses it elsewhere.
    binds_thinking: bool = False
    # Pictures are replaced by words, for a model that cannot see them.
    hides_pictures: bool = False

    @property
    def shares_front(self) -> bool:
        """Whether personal parts come after shared ones, as from the second renderer on."""
        return self.renderer > 1

    @property
    def wording(self) -> Wording:
        """Our own sentences in its messages."""
        return wording(self.renderer)

    def loads_for(self, model: str) -> bool:
        """Return whether tools loaded for `model` can be named to this layout's model."""
        return self.wire == _LOADING_WIRE and model == self.model

    def order_parts(self, parts: Iterable[SystemPart]) -> SystemOrder:
        """Return the positions of the L1 parts. In eager the library grows, and comes last."""
        lazy = self.promotion == "lazy"
        return order_parts(parts, shared_first=self.shares_front, library_first=lazy)


def wording_in(state: State) -> Wording:
    """Return the sentences with which the session continues."""
    return wording(renderer_in(state))


def layout_for(
    promotion: Promotion,
    wire: str,
    model: str,
    renderer: int = RENDERER,
    *,
    binds_thinking: bool = False,
    hides_pictures: bool = False,
) -> Layout:
    """Return the layout of requests to `model` over `wire`; models that take no thinking back share
    one layout."""
    bound_model = model if wire in _THINKING_WIRES else ""
    return Layout(
        promotion=promotion,
        wire=wire,
        model=bound_model,
        renderer=renderer,
        binds_thinking=binds_thinking,
        hides_pictures=hides_pictures,
    )


def layout_of(request: RequestEntry, wire: str, header: SessionEntry) -> Layout:
    """Return the layout with which a request was sent over `wire`, as recorded in the journal."""
    return layout_for(
        request.promotion,
        wire,
        request.target.partition(":")[2],
        known_renderer(request, header),
        binds_thinking=request.binds_thinking,
        hides_pictures=request.hides_pictures,
    )
