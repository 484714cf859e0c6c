"""A reason covers what its op moved, and nothing else (issue 16, B.7)."""

from collections.abc import Sequence

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from msgspec.structs import replace
from tests.strategies import (
    WORLD,
    assemble_state,
    assembler,
    opening,
    patch_ops,
    promotions,
    sessions,
    thorough,
)

from lamina.core.journal import LIBRARY_SOURCE, State, fold_entry, replay
from lamina.core.ledger.agreement import SentPrompt, compare, require_reason
from lamina.core.values.collections import Chain
from lamina.core.values.entry import Entry, MessageEntry, TransformEntry
from lamina.core.values.envelope import Envelope, LaidItem
from lamina.core.values.message import Message, Text
from lamina.core.values.patch import (
    LibraryConsolidate,
    MessagesCachedReplace,
    Patch,
    PatchOp,
    ToolsRemove,
    ToolsReplace,
)
from lamina.core.values.request import Agreement
from lamina.core.values.settings import Promotion
from lamina.errors import InvalidPatch, PrefixMoved

reasoned_ops = patch_ops.filter(lambda op: op.needs_reason)
op_lists = st.lists(reasoned_ops, max_size=4)


def patched(state: State, ops: Sequence[PatchOp]) -> State:
    """The state behind patches of one op each; those that do not apply are left out."""
    for number, op in enumerate(ops):
        entry = TransformEntry(
            id=f"op{number}", parent=state.leaf, at=0.0, transformer="test", patch=Patch(ops=(op,))
        )
        try:
            state = fold_entry(state, entry)
        except InvalidPatch:
            continue
    return state


def agreement_of(before: State, after: State, promotion: Promotion) -> Agreement:
    """What the ledger says of two states, of which the first one was sent."""
    sent = SentPrompt(prompt=assemble_state(assembler(promotion), before))
    reasons = after.requests.reasons[len(before.requests.reasons) :]
    prompt = assemble_state(assembler(promotion), after)
    return compare(sent, prompt, reasons, after.envelope.cached)


@thorough
@given(sessions(), op_lists, promotions)
def test_what_ops_with_reasons_move_is_covered(
    entries: list[Entry], ops: list[PatchOp], promotion: Promotion
) -> None:
    before = replay(entries)
    after = patched(before, ops)
    agreement = agreement_of(before, after, promotion)
    require_reason(agreement)
    if agreement.broke:
        assert agreement.broke.reason


def conversation() -> State:
    """Four turns, all of them sent."""
    entries = opening()
    for number in range(8):
        message = Message(
            role="assistant" if number % 2 else "user", blocks=(Text(f"{number}"),), id=f"m{number}"
        )
        entry = MessageEntry(id=message.id, parent=entries[-1].id, at=0.0, message=message)
        entries.append(entry)
    return replay(entries)


@pytest.mark.parametrize(("place", "is_covered"), [(1, False), (3, False), (4, True), (6, True)])
def test_a_reason_for_messages_covers_those_from_the_first_one_that_moved(
    place: int, is_covered: bool
) -> None:
    before = conversation()
    messages = before.envelope.cached.since(0)
    redacted = (*messages[:4], exclaim(messages[4]), *messages[5:])
    after = patched(before, [MessagesCachedReplace(messages=redacted, reason="redacted")])
    forged = after.envelope.cached.since(0)
    forged = (*forged[:place], exclaim(forged[place]), *forged[place + 1 :])
    mutated = replace(after, envelope=replace(after.envelope, cached=Chain(forged)))
    agreement = agreement_of(before, mutated, "lazy")
    assert agreement.broke is not None
    assert agreement.broke.source == f"message:m{min(place, 4)}"
    assert (not agreement.unexplained) == is_covered


def test_a_tool_that_changed_places_with_one_that_has_its_reason_needs_none() -> None:
    """It was taken out and put back behind the other one; only that was anybody's doing."""
    before = conversation()
    find, read = before.envelope.tools
    after = patched(before, [
        ToolsRemove(names=(find.name,), reason="not now"),
        ToolsReplace(tools=(read, find), reason="again"),
    ])  # fmt: skip
    agreement = agreement_of(before, after, "lazy")
    assert agreement.broke is not None
    assert agreement.broke.reason == "not now; again"
    assert agreement.unexplained == ()
    swapped = replace(before, envelope=replace(before.envelope, tools=(read, find)))
    assert agreement_of(before, swapped, "lazy").unexplained


# -- what nobody gave a reason for ---------------------------------------------------------------


def covered_sources(before: State, after: State) -> set[str]:
    reasons = after.requests.reasons[len(before.requests.reasons) :]
    return {source for reason in reasons for source in reason.moved.sources}


def untouched_messages(before: State, after: State) -> int:
    """How many messages of history no reason speaks of."""
    firsts = [
        reason.moved.messages_from
        for reason in after.requests.reasons[len(before.requests.reasons) :]
    ]
    sent = before.turn.start if before.turn.start is not None else len(before.envelope.cached)
    return min([sent, *(first for first in firsts if first is not None)])


def mutations(before: State, after: State) -> list[tuple[str, Envelope]]:
    """Envelopes in which one thing is otherwise that no reason covers, by its source."""
    envelope, covered = after.envelope, covered_sources(before, after)
    made: list[tuple[str, Envelope]] = []
    listed = envelope.tool_list
    for at, tool in enumerate(listed):
        source = f"tool:{tool.name}"
        other = replace(tool, description=f"{tool.description}!")
        tools = (*listed[:at], other, *listed[at + 1 :])
        if source not in covered:
            made.append((source, replace(envelope, listed=tools)))
    for at, part in enumerate(envelope.system):
        source = f"system:{part.name}"
        text = replace(part, text=f"{part.text}!")
        system = (*envelope.system[:at], text, *envelope.system[at + 1 :])
        if source not in covered and part.text.strip():
            made.append((source, replace(envelope, system=system)))
    if envelope.library and LIBRARY_SOURCE not in covered:
        made.append((LIBRARY_SOURCE, replace(envelope, library=envelope.library[:-1])))
    messages = envelope.cached.since(0)
    for at, message in enumerate(messages[: untouched_messages(before, after)]):
        if any(isinstance(block, Text) and block.text.strip() for block in message.blocks):
            changed = (*messages[:at], exclaim(message), *messages[at + 1 :])
            made.append((f"message:{message.id}", replace(envelope, cached=Chain(changed))))
    return made


def exclaim(message: Message) -> Message:
    blocks = tuple(
        Text(f"{block.text}!") if isinstance(block, Text) and block.text.strip() else block
        for block in message.blocks
    )
    return replace(message, blocks=blocks)


@st.composite
def conversations(draw: st.DrawFn) -> list[Entry]:
    """Questions and answers, all of them sent, and items in the library."""
    entries = opening()
    laid = LaidItem(item=WORLD[0].id, version=WORLD[0].version)
    library = LibraryConsolidate(items=(laid,), reason="because")
    patch = Patch(ops=(library,))
    entries.append(
        TransformEntry(id="l", parent=entries[-1].id, at=0.0, transformer="test", patch=patch)
    )
    for number in range(draw(st.integers(2, 5))):
        for role in ("user", "assistant"):
            name = f"{role[0]}{number}"
            message = Message(role=role, blocks=(Text(f"{role} {number}"),), id=name)
            entries.append(MessageEntry(id=name, parent=entries[-1].id, at=0.0, message=message))
    return entries


@thorough
@given(
    conversations(),
    op_lists,
    promotions,
    st.sampled_from(["tool:", "system:persona", LIBRARY_SOURCE, "message:"]),
    st.data(),
)
def test_what_moves_outside_of_what_reasons_cover_is_refused(
    entries: list[Entry],
    ops: list[PatchOp],
    promotion: Promotion,
    kind: str,
    data: st.DataObject,
) -> None:
    before = replay(entries)
    after = patched(before, ops)
    candidates = [made for made in mutations(before, after) if made[0].startswith(kind)]
    assume(candidates)
    source, envelope = data.draw(st.sampled_from(candidates))
    mutated = replace(after, envelope=envelope)
    agreement = agreement_of(before, mutated, promotion)
    with pytest.raises(PrefixMoved):
        require_reason(agreement)
    assert agreement.broke is not None
    if source != LIBRARY_SOURCE:
        assert source in {place.source for place in agreement.unexplained}
