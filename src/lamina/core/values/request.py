"""Defines the request context: what one request was built from, and why. It is stored with the
answer."""

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
    """A point at which the prefix is dead anyway, or at which discarding it pays off."""

    kind: BoundaryKind
    reason: str


Placement = Literal["library", "above", "message", "left_out"]


class ContextItem(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One item of a request: its position and cost, and why it is included or left out."""

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
    # How it was found, and from which source: see `Provenance`.
    origin: str = ""
    source: str = ""
    level: int | None = None
    priority_before: int | None = None

    @property
    def provenance(self) -> Provenance:
        """The provenance of the item; its fields are stored flat."""
        return Provenance(**{name: getattr(self, name) for name in Provenance.__struct_fields__})


# The origin of tools from a pool that is offered whole.
WHOLE_POOL = "whole_pool"


class ContextTool(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A tool in a request's list. A tool marked `kept` joined for an earlier question; one chosen
    after the list could no longer change is listed among the items instead."""

    item: ItemId
    # The model's name for it.
    name: str = ""
    tokens: int = 0
    include: Include = "always"
    score: float | None = None
    origin: str = ""
    source: str = ""
    kept: bool = False

    @property
    def provenance(self) -> Provenance:
        """The provenance of the tool."""
        return Provenance(
            include=self.include, score=self.score, origin=self.origin, source=self.source
        )


class LeftOut(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """An item or part left out of the request, and the reason. `what` is an item id or a name."""

    what: str
    reason: Literal[
        "attachment_limit", "window", "missing", "ambiguous", "unreadable", "refused",
        "superseded", "removed", "has_images", "history", "still_out", "ranked_lower", "room_left",
        "thinking",
    ]  # fmt: skip
    detail: str
    tokens: int = 0
    # The folder, tag or note that would have brought it.
    source: str = ""
    # How well it matches the question, if others were preferred.
    score: float | None = None
    # Why nothing was chosen at all, if that is the reason.
    lacking: Evidence | None = None


class Attachments(Struct, frozen=True, kw_only=True):
    """The items that apply to a turn, the unavailable ones, and warnings for a person. Every step
    of a turn adds to them with `+` and passes all of them on."""

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
        """Return the attachments without some items, with a report for each."""
        reports = tuple(report(a) for a in self.attachments if a.item.id in items)
        if not reports:
            return self
        rest = tuple(a for a in self.attachments if a.item.id not in items)
        return Attachments(
            attachments=rest, left_out=self.left_out + reports, warnings=self.warnings
        )


NOTHING = Attachments()


class GatheredItems(Struct, frozen=True, kw_only=True):
    """The items that one reference brings: the named item, then those that come along with it."""

    readings: tuple[LoadedItem, ...] = ()
    left_out: tuple[LeftOut, ...] = ()
    warnings: tuple[str, ...] = ()


class Break(Struct, frozen=True, kw_only=True):
    """The first difference between this request and what was sent before. `reason` is the recorded
    reason for everything that moved."""

    layer: Layer
    segment: int
    source: str
    reason: str
    before: str = ""


class MovedPlace(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A position at which a request differs from what was sent before, and the earlier content."""

    layer: Layer
    segment: int
    source: str
    before: str = ""


class Agreement(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The extent to which this request agrees with the last one sent on this path."""

    segments: int = 0
    tokens: int = 0
    reprocessed: int = 0
    broke: Break | None = None
    first: bool = False
    # What moved without a reason on the path that covers it.
    unexplained: tuple[MovedPlace, ...] = ()


class WarmStart(Struct, frozen=True, kw_only=True):
    """The part of a request that a provider should have in its cache because another session or
    branch sent the same beginning at `at`, in tokens as counted here."""

    tokens: int
    at: float
    source: PrefixSource


CacheMeaning = Literal[
    "as_expected", "more_than_expected", "below_minimum", "lifetime_passed",
    "prefix_moved", "model_changed", "routed_elsewhere", "not_reported", "nothing_sent_before",
]  # fmt: skip


class CacheVerdict(Struct, frozen=True, kw_only=True):
    """The cached tokens that the provider reported, compared with those expected."""

    expected: int
    reported: int
    meaning: CacheMeaning
    detail: str


class Fit(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The budget of a request: the size of each part, and the limit."""

    window: int
    reserve: int
    tokens: int
    calibration: float = 1.0

    @property
    def available(self) -> int:
        """The room for everything but the answer, in tokens."""
        return self.window - self.reserve


class HistoryPrice(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The cost of history when the cached prefix is dead: reading it again in full, or with a
    summary in place of its older part. In US dollars; None if a price is unknown."""

    # For history without a summary.
    tokens: int
    keep_cost: float | None = None
    # The tokens that a summary replaces, or would replace; 0 if there is nothing to summarize.
    older_tokens: int = 0
    summary_tokens: int = 0
    # For writing the summary and reading the result once.
    summary_cost: float | None = None
    # For every later request.
    summary_saving: float | None = None
    is_summarised: bool = False


class RequestContext(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The origin of one request's content, with reasons; also what was left out, and how far the
    request agrees with the previous one."""

    target: str
    items: tuple[ContextItem, ...] = ()
    tools: tuple[ContextTool, ...] = ()
    # The tools of the list that may be called; None if all may.
    allowed_tools: tuple[str, ...] | None = None
    left_out: tuple[LeftOut, ...] = ()
    boundaries: tuple[Boundary, ...] = ()
    agreement: Agreement = Agreement(first=True)
    # What may be read from a cache beyond what was sent on this path; None if nothing.
    warm: WarmStart | None = None
    fit: Fit = Fit(window=0, reserve=0, tokens=0)
    # The cost of keeping history and of summarizing it, if the cached prefix was dead.
    history_price: HistoryPrice | None = None
    warnings: tuple[str, ...] = ()

    def allows(self, tool: str) -> bool:
        """Return whether a listed tool may be called, by its name."""
        return self.allowed_tools is None or tool in self.allowed_tools
