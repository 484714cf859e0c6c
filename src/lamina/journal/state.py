"""What a session amounts to at one entry of its tree.

Law: an item counts as laid down if and only if its block stands in the envelope.
"""

from collections.abc import Mapping

from msgspec import Struct

from lamina.journal.reasons import RecordedReason
from lamina.values.collections import FrozenMap
from lamina.values.entry import (
    DecisionEntry,
    InboxEntry,
    Membership,
    RequestEntry,
    SessionEntry,
)
from lamina.values.envelope import Envelope
from lamina.values.item import Item, ItemId
from lamina.values.message import ToolDefinition, ToolResult
from lamina.values.settings import Settings
from lamina.values.usage import Usage


class LaidVersions(Struct, frozen=True, kw_only=True):
    """The versions of an item whose blocks stand in the envelope, in order, and the one that
    applies, none if it was superseded. `in_library` says that it needs no boundary to get there."""

    versions: tuple[str, ...]
    current: str
    in_library: bool = False


class KnownItem(Struct, frozen=True, kw_only=True):
    """What is remembered of an item once it was part of a turn."""

    priority: int
    essential: bool
    added: int
    named: int


class State(Struct, frozen=True, kw_only=True):
    """What a session amounts to at one entry of its tree."""

    session: SessionEntry
    settings: Settings
    envelope: Envelope
    items: FrozenMap[tuple[ItemId, str], Item]
    # The entry that holds each of them.
    item_entries: FrozenMap[tuple[ItemId, str], str]
    standing: Mapping[ItemId, LaidVersions]
    known: Mapping[ItemId, KnownItem]
    # Each with the version it had when it was pinned, for when it can no longer be read.
    pinned: Mapping[ItemId, str]
    forgotten: frozenset[ItemId] = frozenset()
    # Attached, but out for want of room; they stay out while they stay attached.
    still_out: frozenset[ItemId] = frozenset()
    # The rules and references that the latest list still standing names; None if none stands.
    in_force: tuple[ItemId, ...] | None = None
    turns: int = 0
    # What was typed in the turn under way; it must survive a cut in the middle of it.
    question: str = ""
    # What the session set out from, and the files that compactions took out of sight.
    goal: str = ""
    read_files: tuple[str, ...] = ()
    modified_files: tuple[str, ...] = ()
    # Whether any message or item has images, whose bytes a request then needs.
    pictured: bool = False
    # The id of that message while no request was made for it.
    asked: str = ""
    turn_start: int | None = None
    # The request whose answer called for results that are not there yet.
    called_by: str = ""
    # Of the calls that wait: what has run already, and what was decided.
    results: Mapping[str, ToolResult] = {}
    # The blobs with all of those that were cut.
    whole_results: Mapping[str, str] = {}
    decisions: Mapping[str, DecisionEntry] = {}
    # Tools that run unasked in this session, with the digest of the definition that was allowed.
    allowed: Mapping[ItemId, str] = {}
    # Whether the provider refused a request of this turn as too long.
    retried: bool = False
    open_request: RequestEntry | None = None
    # What had been recorded when that was prepared; the rest is for the next one to explain.
    open_at: tuple[int, int, Mapping[ItemId, LaidVersions], tuple[ToolDefinition, ...]] | None = (
        None
    )
    last_sent: RequestEntry | None = None
    # What the provider said it cost.
    last_usage: Usage | None = None
    # What the provider calls its answer.
    last_reply: str = ""
    # What stood when that was sent: whatever is gone since has to be reported.
    sent_standing: Mapping[ItemId, LaidVersions] = {}
    # The list of tools that was sent with it.
    sent_tools: tuple[ToolDefinition, ...] = ()
    # Reasons recorded on this path since the last request that was sent, with what they cover.
    reasons: tuple[RecordedReason, ...] = ()
    # How many messages gave way to a summary since then, with the reason.
    cuts: tuple[tuple[str, int], ...] = ()
    calibration: Mapping[str, float] = {}
    # Digests of what was given otherwise when the session was opened again.
    given: Mapping[str, str] = {}
    # What applies to every turn.
    always: tuple[tuple[ItemId, str], ...] = ()
    # What a person added and took out, in order.
    members: Mapping[ItemId, Membership] = {}
    # Tools that a person or a hook removed, by the model's names for them, each with the reason.
    # They stay away until somebody gives them back.
    withdrawn: Mapping[str, str] = {}
    # Names in the list that came with a runner's tools, which alone can run them.
    hosted: frozenset[str] = frozenset()
    # Messages that wait for the next turn, by the entry that holds them.
    inbox: Mapping[str, InboxEntry] = {}
    # How often chosen tools joined a list that had been sent.
    tool_joins: int = 0
    leaf: str = ""
