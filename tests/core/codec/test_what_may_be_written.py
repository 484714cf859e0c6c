"""Issue 16, B.10: nothing that cannot be read back is ever written, of no kind of entry."""

import re
from typing import Any, get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Struct, json
from msgspec.structs import force_setattr
from tests.strategies import header, modest, thorough, values_of

from lamina.core.codec import canonical_bytes, decode_damaged_entry, decode_entry, encode_entry
from lamina.core.values.entry import (
    CustomEntry,
    DecisionEntry,
    Entry,
    LabelEntry,
    MessageEntry,
    RequestEntry,
    SessionEntry,
    SettingsEntry,
    UnknownEntry,
)
from lamina.core.values.message import Text
from lamina.core.values.selection import SearchSettings, preset
from lamina.core.values.settings import Settings
from lamina.errors import InvalidEntry, JournalError, LaminaError

PLACE: dict[str, Any] = {"id": "000001", "parent": "000000", "at": 1.0}


# What an unknown entry has besides its fields is in them.
WRITTEN = [kind for kind in get_args(Entry) if kind is not UnknownEntry]


@pytest.mark.parametrize("kind", WRITTEN)
def test_every_sound_entry_is_written_as_ever_and_read_back(kind: type[Any]) -> None:
    @modest
    @given(values_of(kind))
    def check(entry: Entry) -> None:
        assert encode_entry(entry) == canonical_bytes(entry)
        assert decode_entry(encode_entry(entry)) == entry

    check()


class Stranger(Struct, frozen=True):
    """What no field of an entry expects."""

    odd: str = "odd"


# None of them is what any field declares, except where anything may stand.
STRANGE: tuple[Any, ...] = (Stranger(), (float("nan"),), b"\xff", 1 + 2j, {"odd": {1.5: object()}})


@pytest.mark.parametrize("kind", [k for k in WRITTEN if k not in (RequestEntry, MessageEntry)])
def test_an_entry_with_a_strange_value_in_any_field_is_refused_or_read_back(
    kind: type[Any],
) -> None:
    """Whatever stands in a field: what is written can be read."""

    @modest
    @given(values_of(kind), st.sampled_from(kind.__struct_fields__), st.sampled_from(STRANGE))
    def check(entry: Entry, field: str, value: Any) -> None:
        force_setattr(entry, field, value)
        try:
            data = encode_entry(entry)
        except LaminaError:
            return
        decode_entry(data)

    check()


@thorough
@given(values_of(RequestEntry) | values_of(MessageEntry))
def test_what_is_written_without_a_proof_needs_none(entry: Entry) -> None:
    """Requests without items and messages of one text are not read back before they are written."""
    assert decode_entry(encode_entry(entry)) == entry


@modest
@given(
    values_of(RequestEntry),
    st.sampled_from(["items", "tools", "left_out", "warnings"]),
    st.sampled_from(STRANGE),
)
def test_what_comes_from_outside_into_a_request_is_proven(
    request: RequestEntry, field: str, value: Any
) -> None:
    force_setattr(request.context, field, (value,))
    with pytest.raises(InvalidEntry):
        encode_entry(request)


@modest
@given(values_of(MessageEntry), st.sampled_from(STRANGE))
def test_what_comes_from_outside_into_a_message_is_proven(entry: MessageEntry, value: Any) -> None:
    force_setattr(entry.message, "blocks", (Text(value),))
    with pytest.raises(InvalidEntry):
        encode_entry(entry)


DECISION = {"call_id": "c", "tool": "tool:a/b", "digest": "d", "decision": "maybe"}


@pytest.mark.parametrize(
    ("kind", "fields", "named"),
    [
        (CustomEntry, {"kind": 5}, "$.kind"),
        (CustomEntry, {"kind": "k", "data": {"score": float("nan")}}, "'data'"),
        (CustomEntry, {"kind": "k", "data": object()}, "object"),
        (CustomEntry, {"kind": "k", "data": {5: "five"}}, "str keys"),
        (LabelEntry, {"target": "000000", "label": 5}, "$.label"),
        (DecisionEntry, DECISION, "maybe"),
    ],
)
def test_what_is_refused_is_named(kind: Any, fields: dict[str, Any], named: str) -> None:
    with pytest.raises(InvalidEntry, match=re.escape(named)):
        encode_entry(kind(**PLACE, **fields))


def test_free_data_may_hold_tuples_and_records() -> None:
    data = {"pair": (1, (2, 3)), "search": SearchSettings(top_n=2)}
    back = decode_entry(encode_entry(CustomEntry(kind="k", data=data, **PLACE)))
    assert isinstance(back, CustomEntry)
    assert back.data == {"pair": [1, [2, 3]], "search": {"top_n": 2}}


def test_data_too_deep_to_be_read_is_not_written() -> None:
    data: Any = 0
    for _ in range(3_000):
        data = [data]
    with pytest.raises(InvalidEntry):
        encode_entry(CustomEntry(kind="k", data=data, **PLACE))


# -- what earlier versions wrote -------------------------------------------------------------------


@pytest.mark.parametrize(
    "entry",
    [header(), SettingsEntry(settings=Settings(window=1), **PLACE)],
    ids=["header", "change"],
)
def test_a_setting_that_cannot_be_read_costs_only_itself(entry: Entry) -> None:
    fields = json.decode(canonical_bytes(entry))
    fields["settings"] = {"guide_search": "aggressive", "strip_turns": 2.5, "window": 9_000}
    data = canonical_bytes(fields)
    with pytest.raises(JournalError):
        decode_entry(data)
    mended, problems = decode_damaged_entry(data)
    assert isinstance(mended, SessionEntry | SettingsEntry)
    assert mended.settings == Settings(guide_search=preset("aggressive"), window=9_000)
    assert len(problems) == 2
    assert "guide_search='aggressive'" in problems[0]
    assert "strip_turns=2.5" in problems[1]
    assert "its default holds" in problems[1]


def test_a_line_that_is_wrong_in_other_ways_is_not_mended() -> None:
    for data in (b"{}", b'{"type":"session"}', b"[1]", b"\xff", canonical_bytes(header())[:-1]):
        with pytest.raises(JournalError):
            decode_damaged_entry(data)
