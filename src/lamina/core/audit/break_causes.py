"""One vocabulary for cache misses: kinds, blames, certainties, and which go together.

Laws: a cause has one kind. `proven` needs the bytes of both requests, whatever the cause; what a
provider's machines did is never in them, so a miss there is likely at best. The verdicts of the
ledger, the doctor, and everything that logs or counts breaks use only this table.
"""

from types import MappingProxyType
from typing import Literal, get_args

from msgspec import Struct

from lamina.core.values.prompt import Layer
from lamina.core.values.request import Agreement, CacheMeaning, CacheVerdict

# A recorded boundary; the lifetime passed; bytes changed; bytes agree and were not read.
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


# How much a record contains of requests: their bytes, their reported usage, or figures alone.
RecordDepth = Literal["bodies", "transcript", "usage"]


class CauseWords(Struct, frozen=True, kw_only=True):
    """The description of a cause. `blame` "client" is whoever built the request: you, if the
    program is your own, else your tool."""

    kind: BreakKind
    blame: Blame | Literal["client"]
    # The lowest certainty with the bytes at hand.
    best: Certainty
    # Whether the money could have been saved.
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
        fix="Ask again within the lifetime, or have entries kept for an hour where pauses are "
        'longer: "cache_control": {"type": "ephemeral", "ttl": "1h"}.',
    ),
    "compaction": _row(
        "expected", "nobody", "proven", False, label="history compacted",
        says="the history was compacted",
        fix="Nothing to mend: a summary is a new prefix. Fewer, larger compactions cost less.",
    ),
    "model": _row(
        "expected", "you", "proven", True, label="another model",
        says="the model changed, and each has a cache of its own",
        fix="Change models between sessions, or give the other model a session of its own.",
    ),
    "boundary": _row(
        "expected", "nobody", "proven", False, label="a recorded boundary",
        says="Lamina recorded a boundary",
        fix="Nothing to mend: the reason stands in the journal (lamina log SESSION --requests).",
    ),
    "rewound": _row(
        "expected", "you", "proven", False, label="went back to an earlier message",
        says="the conversation went back to an earlier message",
        fix="Nothing to mend: another branch began.",
    ),
    "clock": _row(
        "moved", "client", "proven", True, label="clock, date or id in front",
        says="something in front of the conversation is made anew: a time, a date or an id",
        fix="Move the time, date or id out of the system prompt and into the last user message.",
    ),
    "system_changed": _row(
        "moved", "client", "proven", True, label="system prompt changed",
        says="the system prompt changed",
        fix="Keep the system prompt as it was, and say what is new in the last user message.",
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
        "(allowed_tools) where the wire has that. Connect servers before the first question.",
    ),
    "first_message": _row(
        "moved", "client", "proven", True, label="first message changed",
        says="the first message changed",
        fix="Send the first message as it was sent before; put reminders into the last message.",
    ),
    "history_edited": _row(
        "moved", "client", "proven", True, label="history edited",
        says="an earlier message was changed",
        fix="Append only. Clear old results in one large step and not a few at a time.",
    ),
    "image": _row(
        "moved", "client", "proven", True, label="picture dropped or sent anew",
        says="a picture was dropped, added or sent in another form",
        fix="Send a picture with the same bytes every time, or describe it in the next message.",
    ),
    "thinking": _row(
        "moved", "client", "proven", True, label="thinking dropped at a turn",
        says="earlier thinking was dropped when the next turn began",
        fix="Send thinking blocks back as they came, or keep them for the whole session "
        "(clear_thinking with keep: all).",
    ),
    "parameter": _row(
        "moved", "you", "proven", True, label="effort, thinking or tool choice",
        says="a parameter changed that the cache depends on",
        fix="Choose effort, thinking mode, tool_choice and tier once a session.",
    ),
    "trimmed": _row(
        "moved", "client", "proven", True, label="oldest messages dropped each turn",
        says="the oldest messages were dropped, so everything behind them moved",
        fix="Drop a large part at once when the window is nearly full, not a little every turn.",
    ),
    "key_order": _row(
        "moved", "client", "proven", True, label="JSON written in another order",
        says="the same JSON was written in another order",
        fix="Keep the text of arguments as it came from the model; do not parse and write it.",
    ),
    "whitespace": _row(
        "moved", "client", "proven", True, label="blanks or line ends changed",
        says="the same text came with other blanks or line ends",
        fix="Send text back byte for byte; do not trim or reformat it on the way.",
    ),
    "update": _row(
        "moved", "tool", "likely", False, label="program updated",
        says="the program was updated in between, and with it its prompt and tools",
        fix="Nothing to mend: begin a new session after an update.",
    ),
    "marker": _row(
        "missed", "client", "proven", True, label="cache marker missing or moved back",
        says="no cache marker reaches what the request before sent",
        fix='Mark the last message of every request: "cache_control": {"type": "ephemeral"}.',
    ),
    "look_back": _row(
        "missed", "client", "proven", True, label="more than 20 blocks since the marker",
        says="more than 20 blocks came since the last marker, and a provider looks no further back",
        fix="Set a second marker about 15 blocks before the last one.",
    ),
    "below_minimum": _row(
        "missed", "nobody", "proven", False, label="shorter than the least that is cached",
        says="the prompt is shorter than the least that the provider caches",
        fix="Nothing to mend while it is short; put stable text in front if it is asked often.",
    ),
    "fan_out": _row(
        "missed", "client", "proven", True, label="sent before the first was written",
        says="it was sent before the request that wrote the same prefix was answered",
        fix="Wait for the first answer to begin, then send the others.",
    ),
    "gateway": _row(
        "missed", "tool", "likely", True, label="rewritten on the way",
        says="every request writes the cache and none reads it: something on the way rewrites them",
        fix="Send the same request past the gateway once and compare what is read.",
    ),
    "other_machine": _row(
        "missed", "vendor", "likely", False, label="other machine, evicted or late",
        says="it was not there when asked for: another machine, an eviction or a late write",
        fix="On OpenAI set prompt_cache_key per session; elsewhere there is nothing to mend.",
    ),
    "unexplained": _row(
        "moved", "nobody", "located", False, label="cause not in the record",
        says="the record does not say why",
        fix="Record the request bodies once (a request log or HAR) and give them to the doctor.",
    ),
})  # fmt: skip

_BEST: dict[RecordDepth, Certainty] = {
    "bodies": "proven",
    "transcript": "likely",
    "usage": "likely",
}
_ORDER = get_args(Certainty)


def cap_certainty(wanted: Certainty, cause: CauseName, depth: RecordDepth) -> Certainty:
    """Return the highest certainty that such a record supports: never `proven` without bytes."""
    return max(wanted, CAUSES[cause].best, _BEST[depth], key=_ORDER.index)


# What to do where the usual fix is out of reach: for users of a program that others wrote, and for
# providers that have no markers.
_TOOL_FIXES: dict[CauseName, str] = {
    "idle": "Answer within the lifetime. Before a longer pause, compact, or begin anew afterwards: "
    "a short prompt is cheap to write again.",
    "history_edited": "Look for a setting that clears old results, and have it clear much at once.",
    "first_message": "Settle permissions, skills and slash commands at the start of a session; "
    "report what remains to the maker of the program, with the times above.",
    "clock": "Look for hooks, status lines or instruction files that write a time or an id; report "
    "what remains to the maker of the program.",
    "thinking": "Keep one thinking level for a session; report it to the maker of the program.",
}
_PLAIN_IDLE = (
    "Ask again within the lifetime, or ask for a longer one where the provider has it (OpenAI from "
    'GPT-5.6 on: "prompt_cache_options": {"ttl": "30m"}).'
)


def fix_for(cause: CauseName, provider: str, *, is_own: bool) -> str:
    """Return what this reader can do about a cause."""
    if not is_own and cause in _TOOL_FIXES:
        return _TOOL_FIXES[cause]
    if cause == "idle" and provider != "anthropic":
        return _PLAIN_IDLE
    return CAUSES[cause].fix


def count_of(number: int, noun: str) -> str:
    """Return a count in words: `1 break`, `2,400 breaks`."""
    return f"{number:,} {noun}{'s' * (number != 1)}"


def blame_of(cause: CauseName, *, is_own: bool) -> Blame:
    """Return who is to blame; `is_own` says that the program which sent the request is the
    user's."""
    blame = CAUSES[cause].blame
    if blame == "client":
        return "you" if is_own else "tool"
    return blame


class BreakWords(Struct, frozen=True, kw_only=True):
    """The outcome for a cache, in the one vocabulary."""

    cause: CauseName
    kind: BreakKind
    blame: Blame
    certainty: Certainty


# The names here of the ledger's verdicts; None is no break. The ledger knows the bytes.
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
    """Return what moved a prefix that Lamina assembled: a boundary where all of it has a recorded
    reason, else a change of what stands there."""
    broke = agreement.broke
    if broke is None or (broke.reason.strip() and not agreement.unexplained):
        return "boundary"
    return _MOVED_LAYERS.get(broke.layer, "history_edited")


def name_verdict(verdict: CacheVerdict, agreement: Agreement) -> BreakWords | None:
    """Return a verdict of the ledger in the one vocabulary; None if nothing broke."""
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
