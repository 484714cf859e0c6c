"""The request to come: what a message would send, before it is sent."""

from msgspec import Struct

from lamina.apps.web.route import RequestBody
from lamina.apps.web.shapes.sessions import NewSession
from lamina.core.ledger import CostRange
from lamina.core.ledger.request_price import CacheRewrite
from lamina.core.values.prompt import Layer, LayerSize, WireRole
from lamina.core.values.request import Agreement, Boundary, ContextItem, ContextTool, LeftOut


class PreviewBody(RequestBody, frozen=True, kw_only=True):
    """The message as it stands."""

    text: str = ""
    attach: tuple[str, ...] = ()
    essential: tuple[str, ...] = ()
    target: str | None = None


class NewPreview(NewSession, frozen=True, kw_only=True):
    """The first message of a session that does not exist yet."""

    text: str = ""
    attach: tuple[str, ...] = ()
    essential: tuple[str, ...] = ()


class SegmentView(Struct, frozen=True, kw_only=True):
    """A run of bytes on the wire, by its digest."""

    layer: Layer
    role: WireRole
    source: str
    tokens: int
    cached: bool
    digest: str


class RequestPreview(Struct, frozen=True, kw_only=True):
    """What would be sent. `cached` is how many tokens a provider should find in its cache, `new`
    the others; both are None where that is not known. `refusal` says why it would not be sent; then
    the rest is as far as it is known. Of a planned question (`only_plan`) this is the request for
    the plan."""

    target: str
    tokens: int
    window: int
    reserve: int
    exact: bool
    layers: tuple[LayerSize, ...]
    items: tuple[ContextItem, ...]
    tools: tuple[ContextTool, ...]
    left_out: tuple[LeftOut, ...]
    cached: int | None
    new: int | None
    cost_range: CostRange | None
    rewrite: CacheRewrite | None
    agreement: Agreement
    boundaries: tuple[Boundary, ...]
    warnings: tuple[str, ...]
    segments: tuple[SegmentView, ...]
    digest: str
    only_plan: bool
    refusal: str
    leaf: str
