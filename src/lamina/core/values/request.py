"""The request context: what one request was built from, and why. It is stored with the answer."""

from collections.abc import Callable, Container
from typing import Literal

from msgspec import Struct

from lamina.core.values.item import Attachment, Include, ItemId, LoadedItem, Provenance
from lamina.core.values.prompt import Layer
from lamina.core.values.selection import Evidence
from lamina.core.values.sent_prefix import PrefixSource

BoundaryKind = Literal[
    "first_request", "expired", "model_change", "system_change", "tools_change",
    "settings_change", "window", "history", "promotion", "compaction", "manual",
    "wire_change", "renderer_change", "damage",
]  # fmt: skip


class Boundary(Struct, frozen=True, kw_only=True):
    """A moment at which the prefix is dead anyway, or at which it is worth killing."""

    kind: BoundaryKind
    reason: str


Placement = Literal["library", "above", "message", "left_out"]


class ContextItem(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One item of a request: where it stands, what it costs, and why it is there or not."""

    item: ItemId
    version: str
    label: str
    placement: Placement
    layer: Layer | None
    tokens: int
    priority: int
    essential: bool = False
    pinned: bool = False
    include: Include = "manual"
    reason: str = ""
    score: float | None = None
    # How it was found, and from what: see `Provenance`.
    origin: str = ""
    source: str = ""
    level: int | None = None
    priority_before: int | None = None

    @property
    def provenance(self) -> Provenance:
        """How it came to be here; its fields are written flat."""
        return Provenance(**{name: getattr(self, name) for name in Provenance.__struct_fields__})


# How the tools of a pool that is offered whole came to be in a request.
WHOLE_POOL = "whole_pool"


class ContextTool(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A tool of a request's list. One that was `kept` joined for an earlier question; one that was
    chosen later than the list could change stands among the items instead."""

    item: ItemId
    # The name that the model knows it by.
    name: str = ""
    tokens: int = 0
    include: Include = "always"
    score: float | None = None
    origin: str = ""
    source: str = ""
    kept: bool = False

    @property
    def provenance(self) -> Provenance:
        """How it came to be part of the request."""
        return Provenance(
            include=self.include, score=self.score, origin=self.origin, source=self.source
        )


class LeftOut(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Something that is not in the request, with its reason. `what` is an item id or a name."""

    what: str
    reason: Literal[
        "attachment_limit", "window", "missing", "ambiguous", "unreadable", "refused",
        "superseded", "removed", "has_images", "history", "still_out", "ranked_lower", "room_left",
        "thinking",
    ]  # fmt: skip
    detail: str
    tokens: int = 0
    # The folder, tag or note that it would have come along with.
    source: str = ""
    # How well it fits the question, of what others were chosen over.
    score: float | None = None
    # Why nothing was chosen at all, where that is why.
    lacking: Evidence | None = None


class Attachments(Struct, frozen=True, kw_only=True):
    """What applies to a turn, what of it cannot be had, and what a person should know about it.
    Every step of a turn adds to it with `+`, and hands it on whole."""

    attachments: tuple[Attachment, ...] = ()
    left_out: tuple[LeftOut, ...] = ()
    warnings: tuple[str, ...] = ()

    def __add__(self, more: "Attachments") -> "Attachments":
        return Attachments(
            attachments=self.attachments + more.attachments,
            left_out=self.left_out + more.left_out,
            warnings=self.warnings + more.warnings,
        )

    def without(
        self, items: Container[ItemId], report: Callable[[Attachment], LeftOut]
    ) -> "Attachments":
        """Less some items, with a report of each."""
        reports = tuple(report(a) for a in self.attachments if a.item.id in items)
        if not reports:
            return self
        rest = tuple(a for a in self.attachments if a.item.id not in items)
        return Attachments(
            attachments=rest, left_out=self.left_out + reports, warnings=self.warnings
        )


NOTHING = Attachments()


class GatheredItems(Struct, frozen=True, kw_only=True):
    """What one reference of a person brings: the item it names, then what comes along with it."""

    readings: tuple[LoadedItem, ...] = ()
    left_out: tuple[LeftOut, ...] = ()
    warnings: tuple[str, ...] = ()


class Break(Struct, frozen=True, kw_only=True):
    """The first place at which this request differs from what was sent before. `reason` is what
    was recorded for all that moved."""

    layer: Layer
    segment: int
    source: str
    reason: str
    before: str = ""


class MovedPlace(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A place at which a request differs from what was sent before, and what stood there."""

    layer: Layer
    segment: int
    source: str
    before: str = ""


class Agreement(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """How far this request agrees with the last one sent on this path."""

    segments: int = 0
    tokens: int = 0
    reprocessed: int = 0
    broke: Break | None = None
    first: bool = False
    # What moved with no reason on the path that covers it.
    unexplained: tuple[MovedPlace, ...] = ()


class WarmStart(Struct, frozen=True, kw_only=True):
    """What a provider should read of a request because another session, or another branch of this
    one, sent the same beginning at `at`: so many tokens, as they are counted here."""

    tokens: int
    at: float
    source: PrefixSource


CacheMeaning = Literal[
    "as_expected", "more_than_expected", "below_minimum", "lifetime_passed",
    "prefix_moved", "model_changed", "routed_elsewhere", "not_reported", "nothing_sent_before",
]  # fmt: skip


class CacheVerdict(Struct, frozen=True, kw_only=True):
    """What the provider reported as cached against what was to be expected."""

    expected: int
    reported: int
    meaning: CacheMeaning
    detail: str


class Fit(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The budget of a request: how large each part is, and what the limit was."""

    window: int
    reserve: int
    tokens: int
    calibration: float = 1.0

    @property
    def available(self) -> int:
        """The room for everything but the answer, in tokens."""
        return self.window - self.reserve


class HistoryPrice(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What history costs where the cached prefix is dead: read afresh as it stands, or with a
    summary in place of its older part. In US dollars; None where a price is not known."""

    # Of history without a summary of it.
    tokens: int
    keep_cost: float | None = None
    # What a summary stands for, or would; 0 if there is nothing to sum up.
    older_tokens: int = 0
    summary_tokens: int = 0
    # The summary and, read afresh, what stands then.
    summary_cost: float | None = None
    # On every later request.
    summary_saving: float | None = None
    is_summarised: bool = False


class RequestContext(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What one request was built from, and why; what was left out, and how far it agrees with the
    one before."""

    target: str
    items: tuple[ContextItem, ...] = ()
    tools: tuple[ContextTool, ...] = ()
    # Those of them that may be called; None if all of them may.
    allowed_tools: tuple[str, ...] | None = None
    left_out: tuple[LeftOut, ...] = ()
    boundaries: tuple[Boundary, ...] = ()
    agreement: Agreement = Agreement(first=True)
    # What may be read beyond what was sent on this path; None if that is nothing.
    warm: WarmStart | None = None
    fit: Fit = Fit(window=0, reserve=0, tokens=0)
    # What keeping history costs, and what a summary of it; where the cached prefix was dead.
    history_price: HistoryPrice | None = None
    warnings: tuple[str, ...] = ()

    def allows(self, tool: str) -> bool:
        """Whether a tool of the list, by its name, may be called."""
        return self.allowed_tools is None or tool in self.allowed_tools
