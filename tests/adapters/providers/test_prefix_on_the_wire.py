"""Law 3 as the vendors see it: a request of a lazy session begins with the one before it."""

from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import anyio
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import Struct
from tests.adapters.providers.strict import JSON, Vendor
from tests.adapters.providers.vendors import each_vendor, open_with

NOTES = ("api.md", "log.md")


class Said(Struct, frozen=True, kw_only=True):
    """One turn: what is asked with which attachments, the calls made, and the answer."""

    question: str
    attach: tuple[str, ...]
    note: str
    calls: tuple[str, ...]
    answer: str


words = st.text(max_size=20)
turns = st.lists(
    st.builds(
        Said,
        question=words.filter(str.strip),
        attach=st.lists(st.sampled_from([*NOTES, "plan.png"]), unique=True).map(tuple),
        note=st.sampled_from(["first", "second", "third\n\n"]),
        calls=st.lists(words, max_size=2).map(tuple),
        # Blank answers leave no message: the next question follows the last one.
        answer=st.one_of(words, st.sampled_from(["", " \n"])),
    ),
    min_size=2,
    max_size=4,
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("workspace")


async def converse(vendor: Vendor, folder: Path, said: Sequence[Said], **given: Any) -> list[JSON]:
    """Every request of the conversation, each accepted by the vendor's server."""
    session = await open_with(vendor, folder, **given)
    requests = []

    def send(request: JSON, reply: JSON) -> Any:
        requests.append(request)
        return vendor.send(request, reply)

    for number, each in enumerate(said):
        # Written anew every time: a touched file is no new version, a changed one is.
        for note in NOTES:
            (folder / note).write_text(each.note, "utf-8")
        turn = await session.prepare(each.question, attach=each.attach)
        if each.calls:
            ids = [f"call-of-{number}-{index}" for index in range(len(each.calls))]
            body = vendor.calling(*((call, "clock", {}) for call in ids))
            turn = await turn.commit(send(turn.request(), body))
            turn = await turn.resume(dict(zip(ids, each.calls, strict=True)))
        await turn.commit(send(turn.request(), vendor.answer(each.answer)))
    return requests


@each_vendor
@settings(max_examples=25, deadline=None, database=None)
@given(said=turns)
def test_each_request_begins_with_the_one_before_it(
    vendor: Vendor, folder: Path, said: list[Said]
) -> None:
    requests = anyio.run(converse, vendor, folder, said)
    for before, after in pairwise(requests):
        assert vendor.system_text(before) == vendor.system_text(after)
        assert before.get("tools") == after.get("tools")
        assert before.get("config") == after.get("config")
        sent, again = vendor.flatten(before), vendor.flatten(after)
        assert again[: len(sent)] == sent
        assert len(again) > len(sent)
