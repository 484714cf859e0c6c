"""Hypothesis strategies that the pure rooms share: any value of a type, and sessions that could be.

`values_of(SomeStruct)` follows the types of a record's fields, so a new field or entry type is
covered the day it is written. `sessions()` draws entries that form a valid path.
"""

from collections.abc import Callable, Sequence
from types import NoneType, UnionType
from typing import Any, Literal, NewType, Union, get_args, get_origin

import msgspec
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from msgspec import Struct
from msgspec.structs import replace

from lamina.core.journal import State, fold_entry, initial_state
from lamina.core.layers import Assembler, Layout
from lamina.core.values.collections import Chain
from lamina.core.values.entry import (
    Entry,
    EphemeralEntry,
    ForgetEntry,
    ItemEntry,
    MessageEntry,
    OpeningEntry,
    PinEntry,
    ReplyEntry,
    RequestEntry,
    SessionEntry,
    SettingsEntry,
    TransformEntry,
)
from lamina.core.values.envelope import Envelope, LaidItem, Options, SystemPart
from lamina.core.values.item import Item, ItemId, Picture, note_id
from lamina.core.values.message import (
    Context,
    Message,
    Text,
    ToolCall,
    ToolDefinition,
    ToolResult,
    ToolText,
    Use,
)
from lamina.core.values.patch import (
    CompactionApply,
    ItemLay,
    ItemSupersede,
    LibraryConsolidate,
    MessagesCachedAppend,
    MessagesCachedReplace,
    MessagesUncachedAppend,
    OnceOps,
    OptionsSet,
    Patch,
    PatchOp,
    ResultsReplace,
    SystemPartRemove,
    SystemPartSet,
    SystemPartsReplace,
    ToolsRemove,
    ToolsReplace,
)
from lamina.core.values.prompt import Prompt
from lamina.core.values.request import ContextItem, LeftOut, RequestContext
from lamina.core.values.selection import SearchSettings
from lamina.core.values.settings import Promotion, Settings
from lamina.core.values.usage import Usage
from lamina.errors import InvalidPatch

Any_ = st.SearchStrategy[Any]

# Two slow cores: enough examples to find things, no deadline, nothing kept on disk.
thorough = settings(
    max_examples=100, deadline=None, database=None, suppress_health_check=[HealthCheck.too_slow]
)
modest = settings(thorough, max_examples=40)

# -- any value of a type -------------------------------------------------------------------------

texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
json_values: Any_ = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**63 - 1)
    | st.floats(allow_nan=False, allow_infinity=False) | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=6,
)  # fmt: skip
_PLAIN: dict[Any, Any_] = {
    msgspec.UnsetType: st.just(msgspec.UNSET),
    str: texts,
    int: st.integers(-(2**63), 2**63 - 1),
    float: st.floats(allow_nan=False, allow_infinity=False),
    bool: st.booleans(),
    NoneType: st.none(),
    Any: json_values,
}
# Fields whose range is narrower than their type.
_counts = st.integers(0, 2**63 - 1)
_shares = st.floats(0, 1, exclude_min=True)
_OPTIONS: dict[str, Any_] = {
    "temperature": st.none() | st.floats(0, allow_infinity=False),
    "top_p": st.none() | st.floats(0, 1),
    "max_tokens": st.none() | _counts,
}
_NARROW: dict[type, dict[str, Any_]] = {
    Options: _OPTIONS,
    SearchSettings: {
        **dict.fromkeys(("top_k", "top_n", "expansion_depth", "expansion_top_n",
                         "expansion_chunks"), _counts),
        **dict.fromkeys(("include_score", "floor", "expansion_threshold"), st.floats(-1, 1)),
    },
    Settings: _OPTIONS
    | {
        "max_requests": st.none() | st.integers(1, 2**63 - 1),
        **{name: st.none() | _counts for name in ("window", "output_reserve", "attachment_limit",
                                                  "history_messages", "history_tokens",
                                                  "compaction_reserve", "compaction_keep",
                                                  "tool_joins")},
        **dict.fromkeys(("strip_turns", "strip_after_turns", "summary_tokens",
                         "compaction_summary", "compaction_ahead", "embed_depth",
                         "whole_pool_tokens"), _counts),
        **dict.fromkeys(("prune_to", "prune_recent"), _shares),
        "prune_cold_above": st.none() | _shares,
        "allow_hosts": st.lists(st.sampled_from(["a.org", "*.b.org:8080"]), max_size=2).map(tuple),
        "cache_lifetime_s": st.none() | st.floats(0, allow_infinity=False),
        "summary_timeout_s": st.floats(0, allow_infinity=False),
        **dict.fromkeys(("spend_turn", "spend_session", "spend_day", "ask_above_cost"),
                        st.none() | st.floats(0, allow_infinity=False)),
    },
}  # fmt: skip


def values_of(kind: Any) -> Any_:
    """Any value of a type that a record's field may have."""
    if kind in _PLAIN:
        return _PLAIN[kind]
    if isinstance(kind, NewType):
        return values_of(kind.__supertype__)
    origin, args = get_origin(kind), get_args(kind)
    if origin is Literal:
        return st.sampled_from(args)
    if origin in (Union, UnionType):
        return st.one_of([values_of(arg) for arg in args])
    if origin is tuple:
        return st.lists(values_of(args[0]), max_size=2).map(tuple)
    if origin is dict:
        return st.dictionaries(values_of(args[0]), values_of(args[1]), max_size=3)
    assert isinstance(kind, type)
    assert issubclass(kind, Struct), f"no strategy for {kind!r}"
    narrow = _NARROW.get(kind, {})
    fields = {
        field.name: narrow[field.name] if field.name in narrow else values_of(field.type)
        for field in msgspec.structs.fields(kind)
    }
    return st.builds(kind, **fields)


# -- a small world, so that things meet again ----------------------------------------------------

PATHS = ("a.md", "b.md", "c.md")
PICTURE = Picture(digest="d" * 64, media_type="image/png", width=640, height=480)
WORLD: tuple[Item, ...] = (
    *(
        Item(id=note_id(path), content=f"{path} {word}")
        for path in PATHS
        for word in ("old", "new")
    ),
    Item(id=note_id("seen.md"), content="look", pictures=(PICTURE,)),
    Item(id=ItemId("rule:tone"), content="Be brief."),
)
TOOLS = tuple(
    ToolDefinition(name=name, parameters={"type": "object", "properties": {name: {}}})
    for name in ("find", "read")
)
words = st.sampled_from(["", "hello", " spaced ", "two\nlines", "é"])
reasons = st.sampled_from(["because", " a reason "])
known_items = st.sampled_from(WORLD)
laid = known_items.map(lambda item: LaidItem(item=item.id, version=item.version))
parts = st.builds(SystemPart, name=st.sampled_from(["persona", "project"]), text=words)


@st.composite
def contexts(draw: st.DrawFn) -> Context:
    chosen = draw(st.lists(known_items, max_size=3, unique_by=lambda item: item.id))
    uses = tuple(
        Use(item=item.id, version=item.version, form=draw(st.sampled_from(["full", "named"])))
        for item in chosen
    )
    return Context(uses=uses, in_force=draw(st.sampled_from([None, (), (ItemId("rule:tone"),)])))


@st.composite
def user_messages(draw: st.DrawFn, ids: str = "m") -> Message:
    context = draw(st.none() | contexts())
    typed = Text(draw(words))
    number = draw(st.integers(0, 999))
    return Message(
        role="user", blocks=(context, typed) if context else (typed,), id=f"{ids}{number}"
    )


@st.composite
def answers(draw: st.DrawFn, ids: str = "m") -> Message:
    number = draw(st.integers(0, 999))
    call = ToolCall(id=f"call{number}", name="find", arguments='{"q": 1}')
    blocks = draw(st.sampled_from([(Text("sure"),), (Text("let me look"), call), (call,)]))
    return Message(role="assistant", blocks=blocks, id=f"{ids}{number}")


histories = st.lists(user_messages("h") | answers("h"), max_size=4).map(tuple)
tool_texts = st.lists(
    st.builds(ToolText, name=st.sampled_from(["search", "web"]), text=words), max_size=2
).map(tuple)

patch_ops: st.SearchStrategy[PatchOp] = st.one_of(
    st.builds(SystemPartSet, name=st.sampled_from(["persona", "memory"]), text=words,
              reason=reasons),
    st.builds(SystemPartRemove, name=st.sampled_from(["persona", "memory"]), reason=reasons),
    st.builds(SystemPartsReplace, parts=st.lists(parts, max_size=3).map(tuple), reason=reasons),
    st.builds(ToolsReplace, tools=st.sampled_from([(), TOOLS, TOOLS[:1]]), reason=reasons),
    st.builds(ToolsReplace, tools=st.just(TOOLS), barred=st.just((TOOLS[0].name,)),
              reason=reasons),
    st.builds(ToolsRemove, names=st.sampled_from([("find",), ("absent",)]), reason=reasons),
    st.builds(MessagesCachedReplace, messages=histories, reason=reasons),
    st.builds(MessagesCachedReplace, messages=histories, kept=st.integers(0, 2), reason=reasons),
    st.builds(MessagesCachedAppend, reason=st.sampled_from(["", "why"]),
              messages=st.lists(user_messages("a"), max_size=2).map(tuple)),
    st.builds(ResultsReplace, message=st.sampled_from(["t1", "h1"]), reason=reasons,
              results=st.lists(st.builds(ToolResult, call_id=st.sampled_from(["call1", "c"]),
                                         name=st.just("find"), text=words), max_size=2).map(tuple)),
    st.builds(MessagesUncachedAppend, messages=histories),
    st.builds(OptionsSet, temperature=st.sampled_from([None, 0, 0.5])),
    st.builds(OptionsSet, reasoning=st.sampled_from([None, "low"]), scope=st.just("cached"),
              reason=reasons),
    st.builds(CompactionApply, first_kept=st.integers(-3, 9), summary=words, reason=reasons),
    known_items.map(lambda item: ItemLay(item=item.id, version=item.version)),
    known_items.map(lambda item: ItemSupersede(item=item.id, version=item.version)),
    st.builds(LibraryConsolidate, reason=reasons,
              items=st.lists(laid, max_size=3, unique_by=lambda each: each.item).map(tuple)),
)  # fmt: skip
patches = st.builds(Patch, ops=st.lists(patch_ops, min_size=1, max_size=3).map(tuple))

# -- sessions ------------------------------------------------------------------------------------


def header(**fields: Any) -> SessionEntry:
    return SessionEntry(id="e0", parent=None, at=0.0, session="s", **fields)


def _context_item(item: Item, essential: bool) -> ContextItem:
    return ContextItem(
        item=item.id, version=item.version, label=item.key, placement="message", layer="L3",
        tokens=3, priority=5, essential=essential,
    )  # fmt: skip


def _request_fields(items: Sequence[Item], left: Sequence[Item], tokens: int) -> dict[str, Any]:
    context = RequestContext(
        target="fake:m",
        items=tuple(_context_item(item, index == 0) for index, item in enumerate(items)),
        left_out=tuple(LeftOut(what=item.id, reason="window", detail="full") for item in left),
    )
    return {
        "target": "fake:m", "context": context, "before": "e0", "base": None, "kept": 0,
        "digests": (), "cached_run": 0, "tokens": tokens, "cached_tokens": 0,
    }  # fmt: skip


def unsorted(keys: Sequence[str]) -> st.SearchStrategy[dict[str, str]]:
    """Some of the keys in any order: not only in that in which they are written down."""
    some_keys = st.lists(st.sampled_from(keys), max_size=len(keys), unique=True)
    return some_keys.map(lambda drawn: {key: f"digest of {key}" for key in drawn})


some_items = st.lists(known_items, max_size=2, unique_by=lambda item: item.id)


@st.composite
def entries_after(draw: st.DrawFn, state: State, prefix: str, most: int = 12) -> list[Entry]:
    """Entries that may follow `state`, with ids of their own."""
    made: list[Entry] = []
    steps = draw(st.lists(st.integers(0, 11), max_size=most))
    for number, step in enumerate(steps):
        fields: dict[str, Any] = {
            "id": f"{prefix}{number}", "parent": state.leaf, "at": float(number)
        }  # fmt: skip
        entry: Entry
        match step:
            case 0 | 1 | 2:
                entry = MessageEntry(message=draw(user_messages()), **fields)
            case 3 | 4:
                entry = MessageEntry(message=draw(answers()), **fields)
            case 5:
                calls = state.envelope.cached[-1].calls if len(state.envelope.cached) else ()
                results = [ToolResult(call_id=c.id, name=c.name, text="found") for c in calls]
                message = Message(role="tool", blocks=tuple(results), id=f"t{number}")
                wholes = draw(unsorted(["call1", "call10", "call2"]))
                entry = MessageEntry(message=message, whole_results=wholes, **fields)
            case 6 | 7:
                entry = TransformEntry(transformer="test", patch=draw(patches), **fields)
            case 8:
                once = st.builds(OnceOps, transformer=st.just("once"),
                                 ops=st.lists(patch_ops, max_size=2).map(tuple))  # fmt: skip
                patched = draw(st.lists(once, max_size=1).map(tuple))
                entry = EphemeralEntry(tool_texts=draw(tool_texts), patches=patched, **fields)
            case 9 if state.requests.open is not None:
                usage = Usage(input=draw(st.integers(0, 50)))
                entry = ReplyEntry(
                    request=state.requests.open.id, usage=usage, stop="end", **fields
                )
            case 9 | 10:
                request = _request_fields(
                    draw(some_items), draw(some_items), draw(st.integers(0, 9))
                )
                entry = RequestEntry(**request, **fields)
            case _:
                item = draw(known_items)
                other: list[Entry] = [
                    PinEntry(item=item.id, version=item.version, **fields),
                    PinEntry(item=item.id, pinned=False, **fields),
                    ForgetEntry(item=item.id, **fields),
                    SettingsEntry(settings=Settings(window=draw(st.integers(1, 9))), **fields),
                    OpeningEntry(given=draw(unsorted(["tools", "always", "system"])), **fields),
                ]
                entry = draw(st.sampled_from(other))
        try:
            state = fold_entry(state, entry)
        except InvalidPatch:
            continue  # an item cannot be laid down while calls wait
        made.append(entry)
    return made


def opening() -> list[Entry]:
    """A header and every item of the small world, so that whatever is drawn can be rendered."""
    start = header(system=(SystemPart(name="persona", text="You are terse."),), tools=TOOLS)
    made: list[Entry] = [start]
    for number, item in enumerate(WORLD):
        made.append(ItemEntry(id=f"i{number}", parent=made[-1].id, at=0.0, item=item))
    return made


def states_along(entries: Sequence[Entry]) -> list[State]:
    """The state after each entry."""
    assert isinstance(entries[0], SessionEntry)
    states = [initial_state(entries[0])]
    for entry in entries[1:]:
        states.append(fold_entry(states[-1], entry))
    return states


@st.composite
def sessions(draw: st.DrawFn) -> list[Entry]:
    """Entries of one path, header first."""
    start = opening()
    return start + draw(entries_after(states_along(start)[-1], "x"))


# -- prompts -------------------------------------------------------------------------------------

promotions: st.SearchStrategy[Promotion] = st.sampled_from(["lazy", "eager"])


def count_words(text: str) -> int:
    return len(text.split()) + text.count("\n")


def assembler(promotion: Promotion = "lazy", count: Callable[[str], int] = len) -> Assembler:
    return Assembler(count, Layout(promotion=promotion))


def assemble_state(using: Assembler, state: State) -> Prompt:
    start = len(state.envelope.cached) if state.turn.start is None else state.turn.start
    return using.assemble(state.envelope, state.library.items, start)


def envelope_of(*messages: Message, **fields: Any) -> Envelope:
    return replace(Envelope(cached=Chain(messages)), **fields)


def items_of(*items: Item) -> dict[tuple[ItemId, str], Item]:
    return {(item.id, item.version): item for item in items}
