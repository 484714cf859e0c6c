"""What the journal keeps comes back as it was."""

from typing import Any, get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.strategies import header, modest, thorough, values_of

from lamina.core.codec import canonical_bytes, decode, decode_entry, encode_entry
from lamina.core.values.entry import Entry, MessageEntry, SessionEntry, UnknownEntry
from lamina.core.values.envelope import Options
from lamina.core.values.item import Item
from lamina.core.values.message import Context, Message
from lamina.core.values.patch import Patch, PatchOp
from lamina.core.values.request import RequestContext
from lamina.core.values.settings import Settings
from lamina.errors import JournalError, LaminaError


@pytest.mark.parametrize("kind", get_args(Entry))
def test_every_entry_comes_back_from_its_bytes(kind: type[Any]) -> None:
    @modest
    @given(values_of(kind))
    def check(entry: Entry) -> None:
        data = canonical_bytes(entry)
        back = decode_entry(data)
        assert back == entry
        assert type(back) is type(entry)
        assert canonical_bytes(back) == data
        assert b"\n" not in data

    check()


@pytest.mark.parametrize("kind", [Patch, RequestContext, Settings, Options, Item, Message, Context])
def test_every_record_comes_back_from_its_bytes(kind: type[Any]) -> None:
    @modest
    @given(values_of(kind))
    def check(value: Any) -> None:
        assert decode(canonical_bytes(value), kind) == value

    check()


@thorough
@given(st.one_of([values_of(kind) for kind in get_args(PatchOp)]))
def test_a_patch_op_comes_back_as_the_same_op(op: PatchOp) -> None:
    back = decode(canonical_bytes(Patch(ops=(op,))), Patch)
    assert type(back.ops[0]) is type(op)
    assert back.ops == (op,)


def test_no_rules_in_force_is_not_the_same_as_no_change_of_rules() -> None:
    for in_force in (None, ()):
        context = Context(in_force=in_force)
        assert decode(canonical_bytes(context), Context).in_force == in_force


def test_nothing_in_an_entry_is_too_small_to_be_kept() -> None:
    options = Options(temperature=0, max_tokens=0, reasoning="")
    entry = header(options=options, settings=Settings(cache_lifetime_s=0, strip_turns=0))
    back = decode_entry(canonical_bytes(entry))
    assert isinstance(back, SessionEntry)
    assert (back.options, back.settings) == (entry.options, entry.settings)


@pytest.mark.parametrize("number", [float("nan"), float("inf")])
def test_a_number_that_json_cannot_hold_is_refused_instead_of_lost(number: float) -> None:
    with pytest.raises(LaminaError):
        decode(canonical_bytes(Options(temperature=number)), Options)
    with pytest.raises(LaminaError):
        decode(canonical_bytes(Settings(cache_lifetime_s=number)), Settings)


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"null",
        b"{}",
        b"[1]",
        b'{"type":"message","id":"a","parent":null}',
        b'{"type":"message","id":1,"parent":null,"at":0,"message":{}}',
        b'{"type":"session","id":"a","parent":null,"at":0,"session":"s"',
        b'{"type":"session","id":"\xff","parent":null,"at":0,"session":"s"}',
        b'{"type":"unheard_of","id":"a","parent":null,"at":0,"new":"\xff"}',
        b'{"type":"session","id":"a","parent":null,"at":0,"session":"s","options":{"max_tokens":-1}}',
    ],
)
def test_bytes_that_are_no_entry_are_refused(data: bytes) -> None:
    with pytest.raises(JournalError, match="not a journal entry"):
        decode_entry(data)


def test_bytes_that_are_another_value_are_refused_by_name() -> None:
    with pytest.raises(JournalError, match="not a MessageEntry"):
        decode(canonical_bytes(header()), MessageEntry)


def test_an_entry_of_a_later_version_keeps_its_place() -> None:
    line = b'{"type":"unheard_of","id":"a","parent":"b","at":1.5,"new":[1,2]}'
    entry = UnknownEntry(id="a", parent="b", at=1.5, kind="unheard_of", fields={"new": [1, 2]})
    assert decode_entry(line) == entry
    assert decode_entry(encode_entry(entry)) == entry
