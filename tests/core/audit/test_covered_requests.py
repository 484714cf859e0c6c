"""`verify` covers all that goes on the wire, and says what an old record cannot prove.

Issue 16, B.8: an edit with a right checksum that changes what would be sent is found, or the
request is not covered; neither sound nor broken.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import msgspec
import pytest
from msgspec.structs import replace
from tests.fakes.book import SMALL, THINKER, FakeBook
from tests.fakes.sessions import World, note, rule, run, talk, words

from lamina.core.audit.rebuilt_request import rebuild_request, wire_request
from lamina.core.audit.requests import list_requests
from lamina.core.audit.verification import Verification, verify
from lamina.core.codec import canonical_bytes
from lamina.core.journal import Journal, read_journal
from lamina.core.journal.lines import write_lines
from lamina.core.values.entry import Entry, ReplyEntry, RequestEntry, SessionEntry
from lamina.core.values.envelope import Options
from lamina.core.values.message import Block, Text, Thinking, ToolCall, ToolDefinition, ToolText
from lamina.core.values.patch import OptionsSet
from lamina.core.values.prices import flat_prices
from lamina.core.values.settings import CacheRules
from lamina.core.values.usage import Usage
from lamina.core.values.wire import Reply
from lamina.errors import LaminaError

# Marks where prefixes end, keeps them under a key, and can be told which tools may be called.
MARKER = replace(THINKER, provider="anthropic", cache=CacheRules(explicit=True))
KEEPER = replace(SMALL, provider="openai", restricts_tools=True)


def book() -> FakeBook:
    return FakeBook(SMALL, THINKER, MARKER, KEEPER)


async def _sample() -> list[Entry]:
    """A session with options, tools, attachments, results, thinking and three targets."""
    world = World()
    world.book = book()
    session = await world.open(
        system="S", target=MARKER.name, tools=[ToolDefinition(name="find")],
        options=Options(temperature=0.5), always=[rule("tone", "Be brief.")],
    )  # fmt: skip
    turn = await session.prepare("Q1", attach=[note("a.md", words(20))])
    hm = Thinking(text="hm", provider="anthropic", signature="s1")
    await turn.commit(reply("r1", hm, Text("A1")))
    await session.apply("test", OptionsSet(temperature=0.25, max_tokens=50))
    turn = await session.prepare("Q2", tool_texts=[ToolText(name="search", text="found")])
    turn = await turn.commit(reply("r2", ToolCall(id="c1", name="find", arguments="{}")))
    turn = await turn.resume({"c1": "there"})
    await turn.commit(reply("r3", Text("A2")))
    await talk(session, "Q3", target=KEEPER.name)
    await talk(session, "Q4", target=SMALL.name)
    return list(session.entries)


def reply(name: str, *blocks: Block) -> Reply:
    return Reply(blocks=blocks, usage=Usage(input=90, cached=30, output=4), stop="end", id=name)


def journal_from(entries: Sequence[Entry]) -> Journal:
    """A journal as it is read from a file whose checksums are right."""
    lines = [write_lines([entry], int(entry.id, 16) - 1) for entry in entries]
    return read_journal(b"".join(lines), "s")


def told(verification: Verification) -> str:
    checks = [check.problem for check in verification.checked]
    return "\n".join([*checks, *verification.problems, *map(str, verification.damage)])


# -- what is covered -----------------------------------------------------------------------------


def _header(**fields: Any) -> Callable[[Entry], Entry]:
    return lambda entry: replace(entry, **fields) if isinstance(entry, SessionEntry) else entry


def _settings(**fields: Any) -> Callable[[Entry], Entry]:
    def change(entry: Entry) -> Entry:
        if not isinstance(entry, SessionEntry):
            return entry
        return replace(entry, settings=replace(entry.settings, **fields))

    return change


def _requests(**fields: Any) -> Callable[[Entry], Entry]:
    return lambda entry: replace(entry, **fields) if isinstance(entry, RequestEntry) else entry


def _allow_nothing(entry: Entry) -> Entry:
    if not isinstance(entry, RequestEntry):
        return entry
    return replace(entry, context=replace(entry.context, allowed_tools=()))


def _replies(entry: Entry) -> Entry:
    return replace(entry, provider_id="another") if isinstance(entry, ReplyEntry) else entry


EDITS: dict[str, Callable[[Entry], Entry]] = {
    "the temperature": _header(options=Options(temperature=0.75)),
    "how long a cache is to live": _settings(cache_ttl="1h"),
    "a cache made by hand": _settings(explicit_cache=True),
    "the key of the cache": _requests(cache_key="another"),
    "the tools that may be called": _allow_nothing,
    "the wire": _requests(wire="openai"),
    "what is to be sent again": _requests(cached_run=1),
    "the provider's name for its answer": _replies,
}


@pytest.mark.parametrize("what", EDITS)
def test_an_edit_of_what_stands_beside_the_prompt_is_found(what: str) -> None:
    async def body() -> None:
        entries = await _sample()
        assert verify(journal_from(entries), book()).sound
        changed = [EDITS[what](entry) for entry in entries]
        assert changed != entries
        verification = verify(journal_from(changed), book())
        assert verification.state == "broken"
        assert told(verification).strip()

    run(body())


def test_an_edited_temperature_is_named() -> None:
    async def body() -> None:
        entries = [EDITS["the temperature"](entry) for entry in await _sample()]
        verification = verify(journal_from(entries), book())
        [first, *_] = verification.checked
        assert first.problem == "its options or parameters are not those that were sent"

    run(body())


# -- any field of any entry ----------------------------------------------------------------------

# Other values of fields that take a few words only.
WORDS = ("eager", "1h", "openai", "anthropic", "named", "library", "use_tool", SMALL.name)


def plain(value: object) -> Any:
    """A value as plain data, with the fields that a line leaves out because they say nothing."""
    if isinstance(value, msgspec.Struct):
        fields = {name: plain(getattr(value, name)) for name in value.__struct_fields__}
        config = value.__struct_config__
        return fields | ({config.tag_field: config.tag} if config.tag_field else {})
    if isinstance(value, dict):
        return {key: plain(inner) for key, inner in value.items()}
    return [plain(inner) for inner in value] if isinstance(value, tuple | list) else value


def others(value: object) -> list[Any]:
    """What may stand in the place of a value."""
    match value:
        case bool():
            return [not value]
        case int() | float():
            return [value + 1, 0]
        case str():
            return [f"{value}x", "", *WORDS]
        case list():
            return [value[:-1], [*value, *value], ["x"]]
        case None:
            return ["x", 1, ["x"], {"x": 1}]
        case _:
            return []


def edits(value: Any) -> Iterator[Any]:
    """The value with something else in one place, for every place."""
    yield from others(value)
    if isinstance(value, dict | list):
        for key in list(value) if isinstance(value, dict) else range(len(value)):
            for other in edits(value[key]):
                copy = value.copy()
                copy[key] = other
                yield copy


def bodies(journal: Journal) -> dict[str, bytes]:
    """Every request of a journal on its wire; where none can be made, that."""
    targets, made = book(), {}
    listed = list_requests(journal)
    for request in listed.listed:
        try:
            rebuilt = rebuild_request(journal, listed, request, targets)
            encoded = wire_request(rebuilt, targets, {})
            body = targets.wire(encoded.target).encode(encoded)
            made[request.request.id] = canonical_bytes(body)
        except (LaminaError, KeyError):
            made[request.request.id] = b""
    return made


def test_an_edit_that_changes_what_would_be_sent_is_never_sound() -> None:
    """Every field of every entry, also those that are left out."""

    async def body() -> None:
        entries = await _sample()
        sent = bodies(journal_from(entries))
        found = 0
        for place, entry in enumerate(entries):
            for edit in edits(plain(entry)):
                try:
                    other: Entry = msgspec.convert(edit, Entry)
                except (msgspec.ValidationError, LaminaError):
                    continue
                if other == entry or other.id != entry.id:
                    continue
                mutated = journal_from([*entries[:place], other, *entries[place + 1 :]])
                if bodies(mutated) != sent:
                    found += 1
                    assert verify(mutated, book()).state != "sound", edit
        assert found > 100

    run(body())


# -- what is not covered -------------------------------------------------------------------------


def as_before(entry: Entry) -> Entry:
    """A request as it was recorded before its parameters were."""
    if not isinstance(entry, RequestEntry):
        return entry
    return replace(
        entry, wire="", cache_key="", prompt_digest="", parameters_digest="", target_digest=""
    )


def test_what_an_old_record_cannot_prove_is_neither_sound_nor_broken() -> None:
    async def body() -> None:
        entries = [as_before(entry) for entry in await _sample()]
        verification = verify(journal_from(entries), book())
        assert (verification.state, verification.sound) == ("not_covered", False)
        [uncovered] = verification.uncovered
        assert (uncovered.part, uncovered.requests) == ("parameters", 5)
        assert uncovered.why == "older records lack them"
        assert all(check.is_rebuilt for check in verification.checked)

    run(body())


def test_old_requests_are_not_covered_and_new_ones_are() -> None:
    async def body() -> None:
        entries = await _sample()
        first = next(entry for entry in entries if isinstance(entry, RequestEntry))
        mixed = [as_before(entry) if entry is first else entry for entry in entries]
        verification = verify(journal_from(mixed), book())
        assert [bool(check.uncovered) for check in verification.checked] == [
            True, False, False, False, False,
        ]  # fmt: skip
        assert [uncovered.requests for uncovered in verification.uncovered] == [1]

    run(body())


@pytest.mark.parametrize("renderer", [0, 4])
def test_texts_of_another_renderer_are_not_covered_unless_they_are_the_same(renderer: int) -> None:
    async def body() -> None:
        entries = [_header(renderer=renderer)(entry) for entry in await _sample()]
        assert verify(journal_from(entries), book()).sound
        changed = [
            replace(entry, digests=tuple(reversed(entry.digests)), prompt_digest="0" * 64)
            if isinstance(entry, RequestEntry)
            else entry
            for entry in entries
        ]
        verification = verify(journal_from(changed), book())
        assert verification.state == "not_covered"
        assert not any(check.is_rebuilt for check in verification.checked)
        [uncovered] = verification.uncovered
        assert uncovered.part == "texts"
        assert f"renderer {renderer}" in uncovered.why

    run(body())


def test_a_target_of_which_the_book_says_something_else_now_is_not_covered() -> None:
    async def body() -> None:
        entries = await _sample()
        targets = book()
        targets.put(replace(MARKER, max_output=77))
        verification = verify(journal_from(entries), targets)
        assert verification.state == "not_covered"
        [uncovered] = verification.uncovered
        assert (uncovered.part, uncovered.requests) == ("target", 3)
        assert MARKER.name in uncovered.why
        # What no encoder looks at does not count.
        targets.put(replace(MARKER, prices=flat_prices(9.0, 9.0), window=7))
        assert verify(journal_from(entries), targets).sound

    run(body())


def test_requests_in_another_form_of_their_wire_are_not_covered() -> None:
    async def body() -> None:
        entries = [_requests(wire_form=2)(entry) for entry in await _sample()]
        verification = verify(journal_from(entries), book())
        assert verification.state == "not_covered"
        assert [uncovered.part for uncovered in verification.uncovered] == ["wire"]

    run(body())


def test_a_fork_of_a_fork_is_sound_under_the_names_its_requests_were_sent_with() -> None:
    async def body() -> None:
        world = World()
        session = await world.open("one", system="S")
        await talk(session, "Q1")
        for name in ("two", "three"):
            session = await session.fork(name)
            await talk(session, "Q")
        journal = await world.store.read("three")
        assert verify(journal, world.book).sound
        keys = [e.cache_key for e in journal.entries.values() if isinstance(e, RequestEntry)]
        assert keys == ["one", "two", "three"]

    run(body())
