"""Compares the prompts of a conversation: finds the prompt that each one continues, the first
differing byte, and markers that do not reach.

Laws: the first difference in wire order is the break, and the content on both sides of it
determines the cause. Nothing is guessed: if no narrower cause fits, the widest one is used.
Interleaved conversations are distinguished by their messages; a conversation with a changed front
or middle is still the same one. Only the newest prompts are kept whole. A cache entry ends at a
marker, and a later marker finds it at most 20 blocks back; runs of calls and results count once.
"""

import json
import re
from collections import Counter, OrderedDict
from collections.abc import Sequence
from hashlib import blake2b
from itertools import groupby, takewhile
from typing import get_args

from msgspec import Struct
from msgspec.structs import replace

from lamina.core.audit.break_causes import CauseName
from lamina.doctor.observed_request import PartLayer, PromptChange, PromptPart, RecordedPrompt

LOOK_BACK = 20


def judge_markers(
    change: PromptChange, before: RecordedPrompt, after: RecordedPrompt
) -> PromptChange:
    """Return the change, including any problem with the markers."""
    if not (before.has_markers and after.has_markers):
        return change
    old, new = _marks(before.parts), _marks(after.parts)
    if not old:
        return _say(change, "marker", before.parts, -1, "the previous request had no marker")
    if not new:
        return _say(change, "marker", after.parts, -1, "no marker")
    reaching = [mark for mark in new if mark >= old[-1]]
    if not reaching:
        detail = "the last marker is further forward than in the previous request"
        return _say(change, "marker", after.parts, new[-1], detail)
    positions = _positions(after.parts)
    distance = min(positions[mark] - positions[old[-1]] for mark in reaching)
    if distance >= LOOK_BACK:
        detail = f"{distance} blocks from the last marker to the next"
        return _say(change, "look_back", after.parts, reaching[0], detail)
    return change


def _marks(parts: Sequence[PromptPart]) -> list[int]:
    return [index for index, part in enumerate(parts) if part.marked]


def _positions(parts: Sequence[PromptPart]) -> list[int]:
    """Return the position of each part; a run of calls or results counts as one."""
    positions, at, last = [], -1, ""
    for part in parts:
        if part.kind not in ("call", "result") or part.kind != last:
            at += 1
        last = part.kind
        positions.append(at)
    return positions


def _say(
    change: PromptChange, cause: str, parts: Sequence[PromptPart], index: int, detail: str
) -> PromptChange:
    part = parts[index] if parts else None
    return replace(
        change, cause=cause, detail=detail, place=part.place if part else "",
        layer=part.layer if part else None,
    )  # fmt: skip


# The number of bytes shown from both sides, and how many of them precede the difference.
_SHOWN, _LEAD = 40, 8
# A prompt with a summary is at most this share of the earlier prompt.
_SHRUNK = 0.9
_MONTHS = "Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec"
# Values that change with every request, the most specific first.
_VOLATILE = tuple(
    (name, re.compile(pattern))
    for name, pattern in (
        ("a uuid", rb"(?i)\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b"),
        ("a date", rb"\b\d{4}-\d{2}-\d{2}(?:[T ]\d{2}:\d{2}(?::\d{2})?(?:\.\d+)?)?"),
        ("a date", rb"\b\d{1,2}[./]\d{1,2}[./]\d{2,4}\b"),
        ("a date", rf"\b(?:{_MONTHS})[a-z]*\.? \d{{1,2}},? \d{{4}}".encode()),
        ("a date", rf"\b\d{{1,2}} (?:{_MONTHS})[a-z]*\.? \d{{4}}".encode()),
        ("a date", rb"\b(?:Mon|Tues?|Wednes|Thurs?|Fri|Satur|Sun)(?:day)?\b"),
        ("a time", rb"\b\d{1,2}:\d{2}(?::\d{2})?(?:\.\d+)?(?: ?[AaPp][Mm])?"),
        ("a timestamp", rb"\b\d{10,19}\b"),
        ("a hash", rb"(?i)\b(?=[a-z]*\d)(?=\d*[a-z])[0-9a-z_-]{12,}\b"),
        ("a counter", rb"\b\d+\b"),
    )
)
_SUMMARY = re.compile(rb"(?i)\bsummar(?:y|ised|ized)\b|\bcompacted\b")
_EMPTY_THINKING = re.compile(rb"<think>\s*</think>")


def compare_prompts(before: RecordedPrompt, after: RecordedPrompt) -> PromptChange:
    """Return the point where `after` stops continuing `before`, and the reason."""
    old, new = before.parts, after.parts
    index = _first_difference(old, new)
    shared = sum(len(part.data) for part in old[:index])
    size = sum(len(part.data) for part in old)
    change = PromptChange(shared=shared, size=size)
    at_front = index < len(old) and old[index].layer != "messages"
    at_front = at_front or (index < min(len(old), len(new)) and new[index].layer != "messages")
    if not at_front and (named := _changed_parameters(before, after)):
        detail = ", ".join(named)
        front = sum(len(part.data) for part in old if part.layer != "messages")
        return replace(
            change, cause="parameter", place=named[0].split(" ")[0], detail=detail, shared=front
        )
    if index == len(old):
        return _first_picture(change, before, after)
    if index == len(new):
        return replace(change, cause="rewound", layer=old[index].layer, place=old[index].place)
    return _name_difference(change, old, new, index)


def _first_difference(old: Sequence[PromptPart], new: Sequence[PromptPart]) -> int:
    pairs = zip(old, new, strict=False)
    return sum(1 for _ in takewhile(lambda pair: _agree(*pair), pairs))


def _agree(one: PromptPart, other: PromptPart) -> bool:
    return (
        one.data == other.data
        and one.kind == other.kind
        and (one.layer, one.role, one.message) == (other.layer, other.role, other.message)
    )


def _changed_parameters(before: RecordedPrompt, after: RecordedPrompt) -> list[str]:
    old, new = dict(before.parameters), dict(after.parameters)
    return [
        f"{name} {old.get(name, 'unset')} -> {new.get(name, 'unset')}"
        for name in sorted(old.keys() | new.keys())
        if old.get(name) != new.get(name)
    ]


def _first_picture(
    change: PromptChange, before: RecordedPrompt, after: RecordedPrompt
) -> PromptChange:
    """If markers write the cache, cached messages also depend on whether any picture is present."""
    if not after.has_markers or any(part.kind == "image" for part in before.parts):
        return change
    picture = next((part for part in after.parts if part.kind == "image"), None)
    if picture is None:
        return change
    return replace(
        change, cause="image", layer="messages", place=picture.place, offset=0,
        detail="the first picture of the conversation",
    )  # fmt: skip


def _name_difference(
    change: PromptChange, old: Sequence[PromptPart], new: Sequence[PromptPart], index: int
) -> PromptChange:
    one, other = old[index], new[index]
    offset = 0
    if (one.kind, one.role, one.layer) == (other.kind, other.role, other.layer):
        offset = _shared_bytes(one.data, other.data)
    cause, detail = _cause_at(old, new, index, offset)
    start = max(0, offset - _LEAD)
    return replace(
        change,
        cause=cause,
        detail=detail,
        is_sure=cause not in ("compaction", "trimmed") or _is_plain(old, new, index),
        layer=min(one.layer, other.layer, key=get_args(PartLayer).index),
        place=other.place,
        offset=offset,
        before=one.data[start : start + _SHOWN],
        after=other.data[start : start + _SHOWN],
        shared=change.shared + offset,
    )


def _cause_at(
    old: Sequence[PromptPart], new: Sequence[PromptPart], index: int, offset: int
) -> tuple[CauseName, str]:
    one, other = old[index], new[index]
    if "tools" in (one.layer, other.layer):
        return _tool_cause(old, new)
    if "system" in (one.layer, other.layer):
        if _same_text(one.data, other.data):
            return "whitespace", ""
        if (name := find_volatile(one.data, other.data, offset)) and one.layer == other.layer:
            return "clock", name
        return "system_changed", ""
    return _message_cause(old, new, index)


def _tool_cause(old: Sequence[PromptPart], new: Sequence[PromptPart]) -> tuple[CauseName, str]:
    before, after = ([part for part in parts if part.layer == "tools"] for parts in (old, new))
    if Counter(part.data for part in before) == Counter(part.data for part in after):
        return "tools_reordered", ""
    plain = [Counter(_canonical(part.data) for part in parts) for parts in (before, after)]
    if plain[0] == plain[1]:
        return "key_order", "a tool's schema"
    names = [{_tool_name(part.data) for part in parts} for parts in (before, after)]
    added, removed = sorted(names[1] - names[0]), sorted(names[0] - names[1])
    words = [f"added {', '.join(added)}"] * bool(added)
    words += [f"removed {', '.join(removed)}"] * bool(removed)
    return "tools_changed", "; ".join(words) or "a definition was edited"


def _message_cause(
    old: Sequence[PromptPart], new: Sequence[PromptPart], index: int
) -> tuple[CauseName, str]:
    one, other = old[index], new[index]
    before, after = _messages(old), _messages(new)
    at = _count_same(before, after)
    if _is_trimmed(before, after, at):
        return "trimmed", ""
    if _is_summarised(before, after, at, old, new):
        return "compaction", ""
    if len(after) - at == 1 and len(before) - at >= 2 and not set(after[at:]) & set(before):
        return "trimmed", "all of it but the newest message"
    kinds = (one.kind, other.kind)
    if "image" in kinds:
        return "image", ""
    if "thinking" in kinds and (one.kind != other.kind or one.data != other.data):
        return "thinking", ""
    if one.kind == other.kind and one.kind in ("call", "result", "data"):
        canonical = _canonical(one.data)
        if canonical and canonical == _canonical(other.data):
            return "key_order", ""
    if one.kind == other.kind and _same_text(one.data, other.data):
        return "whitespace", ""
    if at == 0:
        return "first_message", ""
    return "history_edited", ""


def message_digests(parts: Sequence[PromptPart]) -> list[bytes]:
    """Return a digest per message, in order."""
    return _messages(parts)


def _messages(parts: Sequence[PromptPart]) -> list[bytes]:
    digests = []
    for _, group in groupby((p for p in parts if p.layer == "messages"), lambda p: p.message):
        seal = blake2b(digest_size=12)
        for part in group:
            seal.update(part.digest)
        digests.append(seal.digest())
    return digests


def _count_same(before: Sequence[bytes], after: Sequence[bytes]) -> int:
    pairs = zip(before, after, strict=False)
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs))


def _is_plain(old: Sequence[PromptPart], new: Sequence[PromptPart], index: int) -> bool:
    """Return whether something after the difference was sent again, or the new text calls itself a
    summary; if neither, it may be another conversation."""
    behind = [{part.digest for part in parts[index:]} for parts in (old, new)]
    return bool(behind[0] & behind[1]) or bool(_SUMMARY.search(new[index].data[:600]))


def _is_trimmed(before: Sequence[bytes], after: Sequence[bytes], at: int) -> bool:
    """Return whether some messages are gone and the following ones continue directly."""
    return any(
        after[at : at + len(before) - start] == before[start:]
        for start in range(at + 1, len(before))
    )


def _is_summarised(
    before: Sequence[bytes], after: Sequence[bytes], at: int,
    old: Sequence[PromptPart], new: Sequence[PromptPart],
) -> bool:  # fmt: skip
    """Return whether several messages are replaced by fewer, with the rest kept after them."""
    sizes = [sum(len(part.data) for part in parts) for parts in (old, new)]
    is_smaller = sizes[1] < _SHRUNK * sizes[0]
    kept = {digest: place for place, digest in enumerate(before)}
    resumed = next((i for i in range(at, len(after)) if kept.get(after[i], -1) > at), None)
    if resumed is None:
        return is_smaller and len(before) - at >= 2 and 2 <= len(after) - at < len(before) - at
    gone, inserted = kept[after[resumed]] - at, resumed - at
    return gone > inserted and gone >= 2 and is_smaller


def find_volatile(before: bytes, after: bytes, offset: int) -> str:
    """Return the kind of value that changes every time at the point where two strings differ: a
    time, a date or an id; empty if none does."""
    for name, pattern in _VOLATILE:
        if _covers(pattern, before, offset) and _covers(pattern, after, offset):
            return name
    return ""


def _covers(pattern: re.Pattern[bytes], text: bytes, offset: int) -> bool:
    start = max(0, offset - 64)
    window = text[start : offset + 64]
    place = offset - start
    return any(match.start() <= place <= match.end() for match in pattern.finditer(window))


def _shared_bytes(one: bytes, other: bytes) -> int:
    """Return the number of leading bytes that agree, found by bisection."""
    low, high = 0, min(len(one), len(other))
    while low < high:
        middle = (low + high + 1) // 2
        if one[low:middle] == other[low:middle]:
            low = middle
        else:
            high = middle - 1
    return low


def _same_text(one: bytes, other: bytes) -> bool:
    """Return whether two strings differ only in whitespace or empty thinking."""
    plain = [_EMPTY_THINKING.sub(b"", text).split() for text in (one, other)]
    return plain[0] == plain[1]


def _canonical(data: bytes) -> str:
    try:
        value = json.loads(data)
        return json.dumps(value, sort_keys=True, ensure_ascii=False)
    except (ValueError, RecursionError):
        return ""


def _tool_name(data: bytes) -> str:
    try:
        value = json.loads(data)
    except (ValueError, RecursionError):
        return "?"
    function = value.get("function", value) if isinstance(value, dict) else {}
    name = function.get("name") if isinstance(function, dict) else None
    return name if isinstance(name, str) else "?"


# Prompts kept at a time: one per concurrent conversation, and only the newest few of a named
# session. Shared parts are kept once.
KEPT, KEPT_OF_ONE = 32, 4
# The share of an earlier prompt's messages that identifies the same conversation.
_SAME = 0.25


class KnownPrompt(Struct, frozen=True, kw_only=True):
    """An earlier prompt, with the digests of its messages."""

    id: str
    prompt: RecordedPrompt
    messages: tuple[bytes, ...]


class Lineage:
    """The prompts of one session, or of a log without session names, in order of sending."""

    def __init__(self, *, is_one_session: bool = False) -> None:
        # Whether all prompts belong together, however little they share.
        self._is_one_session = is_one_session
        # The newest prompt that begins with a chain of messages, by the chain's digest.
        self._chains: dict[bytes, str] = {}
        self._known: OrderedDict[str, KnownPrompt] = OrderedDict()
        # Prompts that a newer one continues; they are no longer heads.
        self._extended: set[str] = set()

    def add(self, id: str, prompt: RecordedPrompt) -> KnownPrompt | None:
        """Add a prompt and return the one it continues."""
        messages = tuple(message_digests(prompt.parts))
        chains = _chain(messages)
        before = self._find(messages, chains)
        for chain in chains:
            self._chains[chain] = id
        if before is not None:
            self._extended.add(before.id)
            prompt = _share(before.prompt, prompt)
        self._known[id] = KnownPrompt(id=id, prompt=prompt, messages=messages)
        while len(self._known) > (KEPT_OF_ONE if self._is_one_session else KEPT):
            gone, _ = self._known.popitem(last=False)
            self._extended.discard(gone)
        return before

    @property
    def known(self) -> Sequence[KnownPrompt]:
        """The prompts kept whole, oldest first."""
        return tuple(self._known.values())

    def _find(self, messages: tuple[bytes, ...], chains: Sequence[bytes]) -> KnownPrompt | None:
        for count in range(len(chains), 0, -1):
            known = self._known.get(self._chains.get(chains[count - 1], ""))
            if known is not None:
                return self._nearest(known, messages, count)
        best = max(
            (known for known in self._known.values() if known.id not in self._extended),
            key=lambda known: len(set(known.messages) & set(messages)),
            default=None,
        )
        if best is None:
            return None
        overlap = len(set(best.messages) & set(messages))
        if overlap and overlap >= _SAME * len(best.messages):
            return best
        if self._is_one_session:
            return next(reversed(self._known.values()))
        return None

    def _nearest(
        self, known: KnownPrompt, messages: tuple[bytes, ...], shared: int
    ) -> KnownPrompt | None:
        """Return, among prompts that share equally much, the one that is a prefix of this prompt if
        the newest one diverged: a question asked in parallel is not an edit of the others."""
        if len(known.messages) == shared or len(messages) > shared + 1:
            return known
        whole = (
            earlier
            for earlier in reversed(self._known.values())
            if earlier.messages == messages[: len(earlier.messages)] and earlier.messages
        )
        found = next(whole, None)
        if found is None and len(known.messages) == len(messages):
            return None
        return found or known


def _share(before: RecordedPrompt, after: RecordedPrompt) -> RecordedPrompt:
    """Return the later prompt, reusing equal parts of the earlier one."""
    pairs = zip(before.parts, after.parts, strict=False)
    parts = [old if old == new else new for old, new in pairs]
    return replace(after, parts=(*parts, *after.parts[len(parts) :]))


def _chain(messages: Sequence[bytes]) -> list[bytes]:
    chains, running = [], b""
    for digest in messages:
        running = blake2b(running + digest, digest_size=12).digest()
        chains.append(running)
    return chains
