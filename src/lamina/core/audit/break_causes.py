"""Defines one vocabulary for cache misses: kinds, blames, certainties, and valid combinations.

Laws: a cause has one kind. `proven` needs the bytes of both requests, whatever the cause; bytes
never show what happened on a provider's machines, so a miss there is likely at best. The ledger's
verdicts, the doctor, and all code that logs or counts breaks use this table and no other.
"""

from types import MappingProxyType
from typing import Literal, get_args

from msgspec import Struct

from lamina.core.values.prompt import Layer
from lamina.core.values.request import Agreement, CacheMeaning, CacheVerdict

# A recorded boundary; the lifetime passed; bytes changed; bytes agree but were not read.
BreakKind = Literal["expected", "expired", "moved", "missed"]
# The author of the requests, the program that a person uses, the provider, or no one.
Blame = Literal["you", "tool", "vendor", "nobody"]
# Seen in the bytes; the best explanation of the figures; the place is known but not the cause;
# neither is known.
Certainty = Literal["proven", "likely", "located", "unknown"]

CauseName = Literal[
    "idle", "compaction", "model", "boundary", "rewound",
    "clock", "system_changed", "tools_reordered", "tools_changed", "first_message",
    "history_edited", "image", "thinking", "parameter", "trimmed", "key_order", "whitespace",
    "update",
    "marker", "look_back", "below_minimum", "fan_out", "gateway", "other_machine",
    "unexplained",
]  # fmt: skip


# The depth of a record: the requests' bytes, the conversation and its usage, or figures alone.
RecordDepth = Literal["bodies", "transcript", "usage"]


class CauseWords(Struct, frozen=True, kw_only=True):
    """The description of a cause. `blame` "client" is whoever built the request: the user's own
    program, or otherwise the tool."""

    kind: BreakKind
    blame: Blame | Literal["client"]
    # The highest possible certainty, with the bytes available.
    best: Certainty
    # Whether the cost could have been avoided.
    avoidable: bool
    label: str
    sentence: str
    fix: str


def _row(
    kind: BreakKind, blame: Blame | Literal["client"], best: Certainty, avoidable: bool, *,
    label: str, says: str, fix: str,
) -> CauseWords:  # fmt: skip
    return CauseWords(
        kind=kind, blame=blame, best=best, avoidable=avoidable, label=label, sentence=says, fix=fix
    )


CAUSES: MappingProxyType[CauseName, CauseWords] = MappingProxyType({
    "idle": _row(
        "expired", "you", "proven", True, label="idle past the cache's lifetime",
        says="the cache had expired",
        fix="Ask again within the lifetime. For longer pauses, keep entries for an hour: "
        '"cache_control": {"type": "ephemeral", "ttl": "1h"}.',
    ),
    "compaction": _row(
        "expected", "nobody", "proven", False, label="history compacted",
        says="the history was compacted",
        fix="Nothing to fix: a summary is a new prefix. Fewer, larger compactions cost less.",
    ),
    "model": _row(
        "expected", "you", "proven", True, label="another model",
        says="the model changed, and each model has its own cache",
        fix="Change models between sessions, or use the other model in its own session.",
    ),
    "boundary": _row(
        "expected", "nobody", "proven", False, label="a recorded boundary",
        says="Lamina recorded a boundary",
        fix="Nothing to fix: the journal has the reason (lamina log SESSION --requests).",
    ),
    "rewound": _row(
        "expected", "you", "proven", False, label="went back to an earlier message",
        says="the conversation went back to an earlier message",
        fix="Nothing to fix: a new branch began.",
    ),
    "clock": _row(
        "moved", "client", "proven", True, label="clock, date or id in front",
        says="something in front of the conversation changes every time: a time, a date or an id",
        fix="Move the time, date or id out of the system prompt and into the last user message.",
    ),
    "system_changed": _row(
        "moved", "client", "proven", True, label="system prompt changed",
        says="the system prompt changed",
        fix="Keep the system prompt unchanged, and put anything new in the last user message.",
    ),
    "tools_reordered": _row(
        "moved", "client", "proven", True, label="tools in another order",
        says="the same tools were sent in another order",
        fix="Sort the tools once, by name, and keep that order for the session.",
    ),
    "tools_changed": _row(
        "moved", "client", "proven", True, label="tools added, removed or edited",
        says="the list of tools changed",
        fix="Offer one list of tools for the whole session; restrict it with tool_choice "
        "(allowed_tools) where the API supports it. Connect servers before the first question.",
    ),
    "first_message": _row(
        "moved", "client", "proven", True, label="first message changed",
        says="the first message changed",
        fix="Keep the first message unchanged; put reminders into the last message.",
    ),
    "history_edited": _row(
        "moved", "client", "proven", True, label="history edited",
        says="an earlier message was changed",
        fix="Only append. Clear old results in one large step, not a few at a time.",
    ),
    "image": _row(
        "moved", "client", "proven", True, label="picture dropped or changed",
        says="a picture was dropped, added or sent in another form",
        fix="Send a picture with the same bytes every time, or describe it in the next message.",
    ),
    "thinking": _row(
        "moved", "client", "proven", True, label="thinking dropped at a turn",
        says="earlier thinking was dropped when the next turn began",
        fix="Send thinking blocks back unchanged, or keep them for the whole session "
        "(clear_thinking with keep: all).",
    ),
    "parameter": _row(
        "moved", "you", "proven", True, label="effort, thinking or tool choice",
        says="a parameter that the cache depends on changed",
        fix="Choose effort, thinking mode, tool_choice and tier once per session.",
    ),
    "trimmed": _row(
        "moved", "client", "proven", True, label="oldest messages dropped each turn",
        says="the oldest messages were dropped, so everything behind them moved",
        fix="Drop a large part at once when the window is nearly full, not a little each turn.",
    ),
    "key_order": _row(
        "moved", "client", "proven", True, label="JSON written in another order",
        says="the same JSON was written in another order",
        fix="Keep arguments as the text the model wrote; do not parse and rewrite them.",
    ),
    "whitespace": _row(
        "moved", "client", "proven", True, label="whitespace or line endings changed",
        says="the same text was sent with different whitespace or line endings",
        fix="Send text back byte for byte; do not trim or reformat it.",
    ),
    "update": _row(
        "moved", "tool", "likely", False, label="program updated",
        says="the program was updated in between, along with its prompt and tools",
        fix="Nothing to fix: start a new session after an update.",
    ),
    "marker": _row(
        "missed", "client", "proven", True, label="cache marker missing or moved back",
        says="no cache marker reaches the previous request's content",
        fix='Mark the last message of every request: "cache_control": {"type": "ephemeral"}.',
    ),
    "look_back": _row(
        "missed", "client", "proven", True, label="more than 20 blocks since the marker",
        says="there are more than 20 blocks since the last marker, and providers look no further",
        fix="Set a second marker about 15 blocks before the last one.",
    ),
    "below_minimum": _row(
        "missed", "nobody", "proven", False, label="shorter than the cache minimum",
        says="the prompt is shorter than the provider's cache minimum",
        fix="Nothing to fix while it is short; if you send it often, put stable text in front.",
    ),
    "fan_out": _row(
        "missed", "client", "proven", True, label="sent before the first was written",
        says="it was sent before the request that wrote the same prefix was answered",
        fix="Wait until the first answer begins, then send the others.",
    ),
    "gateway": _row(
        "missed", "tool", "likely", True, label="rewritten on the way",
        says="every request writes the cache and none reads it: something rewrites them on the way",
        fix="Send the same request once without the gateway, and compare what is read.",
    ),
    "other_machine": _row(
        "missed", "vendor", "likely", False, label="other machine, evicted or late",
        says="it was not there when requested: another machine, an eviction or a late write",
        fix="On OpenAI, set prompt_cache_key per session; elsewhere there is nothing to fix.",
    ),
    "unexplained": _row(
        "moved", "nobody", "located", False, label="cause not in the record",
        says="the record does not say why",
        fix="Record the request bodies once (a request log or a HAR file) and run the doctor on "
        "them.",
    ),
})  # fmt: skip

_BEST: dict[RecordDepth, Certainty] = {
    "bodies": "proven",
    "transcript": "likely",
    "usage": "likely",
}
_ORDER = get_args(Certainty)


def cap_certainty(wanted: Certainty, cause: CauseName, depth: RecordDepth) -> Certainty:
    """Return the highest certainty a record of this depth allows: never `proven` without bytes."""
    return max(wanted, CAUSES[cause].best, _BEST[depth], key=_ORDER.index)


# Fixes for cases where the usual one is impossible: for people who use somebody else's program, and
# for providers without markers.
_TOOL_FIXES: dict[CauseName, str] = {
    "idle": "Answer within the lifetime. Before a longer pause, compact, or start a new session "
    "afterwards: a short prompt is cheap to write again.",
    "history_edited": "Look for a setting that clears old results, and set it to clear a lot at "
    "once.",
    "first_message": "Settle permissions, skills and slash commands at the start of a session; "
    "if it still happens, report it to the program's maker with the times above.",
    "clock": "Look for hooks, status lines or instruction files that write a time or an id; if it "
    "still happens, report it to the program's maker.",
    "thinking": "Keep one thinking level per session, and report this to the program's maker.",
}
_PLAIN_IDLE = (
    "Ask again within the lifetime, or request a longer one if the provider has it (OpenAI, from "
    'GPT-5.6 on: "prompt_cache_options": {"ttl": "30m"}).'
)


def fix_for(cause: CauseName, provider: str, *, is_own: bool) -> str:
    """Return advice to the reader on fixing a cause."""
    if not is_own and cause in _TOOL_FIXES:
        return _TOOL_FIXES[cause]
    if cause == "idle" and provider != "anthropic":
        return _PLAIN_IDLE
    return CAUSES[cause].fix


def count_of(number: int, noun: str) -> str:
    """Return a number with its noun: `1 break`, `2,400 breaks`."""
    return f"{number:,} {noun}{'s' * (number != 1)}"


def blame_of(cause: CauseName, *, is_own: bool) -> Blame:
    """Return who is to blame; with `is_own`, the user wrote the program that sent the request."""
    blame = CAUSES[cause].blame
    if blame == "client":
        return "you" if is_own else "tool"
    return blame


class BreakWords(Struct, frozen=True, kw_only=True):
    """The reason for a cache miss, in the shared vocabulary."""

    cause: CauseName
    kind: BreakKind
    blame: Blame
    certainty: Certainty


# The ledger's verdicts as causes; None is not a break. The ledger has the bytes.
_VERDICTS: dict[CacheMeaning, tuple[CauseName, Certainty] | None] = {
    "as_expected": None,
    "more_than_expected": None,
    "nothing_sent_before": None,
    "not_reported": None,
    "below_minimum": ("below_minimum", "proven"),
    "lifetime_passed": ("idle", "proven"),
    "prefix_moved": ("boundary", "proven"),
    "model_changed": ("model", "proven"),
    "routed_elsewhere": ("other_machine", "likely"),
}


_MOVED_LAYERS: dict[Layer, CauseName] = {
    "tools": "tools_changed", "L1": "system_changed", "L2": "system_changed",
}  # fmt: skip


def name_moved(agreement: Agreement) -> CauseName:
    """Return the cause that moved a prefix assembled by Lamina: a boundary if all of it has a
    recorded reason, otherwise a change of the layer in question."""
    broke = agreement.broke
    if broke is None or (broke.reason.strip() and not agreement.unexplained):
        return "boundary"
    return _MOVED_LAYERS.get(broke.layer, "history_edited")


def name_verdict(verdict: CacheVerdict, agreement: Agreement) -> BreakWords | None:
    """Return a ledger verdict in the shared vocabulary; None if nothing broke."""
    row = _VERDICTS[verdict.meaning]
    if row is None:
        return None
    cause, certainty = row
    if verdict.meaning == "prefix_moved":
        cause = name_moved(agreement)
    return BreakWords(
        cause=cause,
        kind=CAUSES[cause].kind,
        blame=blame_of(cause, is_own=True),
        certainty=cap_certainty(certainty, cause, "bodies"),
    )
