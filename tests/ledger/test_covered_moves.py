"""A reason covers what its op moved, and nothing else (issue 16, B.7)."""

from collections.abc import Sequence

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from msgspec.structs import replace
from tests.strategies import (
    assemble_state,
    assembler,
    modest,
    patch_ops,
    promotions,
    sessions,
    thorough,
)

from lamina.errors import InvalidPatch, PrefixMoved
from lamina.journal import LIBRARY_SOURCE, State, fold_entry, replay
from lamina.ledger import SentPrompt, compare, require_reason
from lamina.values.collections import Chain
from lamina.values.entry import Entry, TransformEntry
from lamina.values.envelope import Envelope
from lamina.values.message import Message, Text
from lamina.values.patch import Patch, PatchOp
from lamina.values.request import Agreement
from lamina.values.settings import Promotion

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
    reasons = after.reasons[len(before.reasons) :]
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


# -- what nobody gave a reason for ---------------------------------------------------------------


def covered_sources(before: State, after: State) -> set[str]:
    reasons = after.reasons[len(before.reasons) :]
    return {source for reason in reasons for source in reason.moved.sources}


def untouched_messages(before: State, after: State) -> int:
    """How many messages of history no reason speaks of."""
    firsts = [reason.moved.messages_from for reason in after.reasons[len(before.reasons) :]]
    sent = before.turn_start if before.turn_start is not None else len(before.envelope.cached)
    return min([sent, *(first for first in firsts if first is not None)])


def mutations(before: State, after: State) -> list[tuple[str, Envelope]]:
    """Envelopes in which one thing is otherwise that no reason covers, by its source."""
    envelope, covered = after.envelope, covered_sources(before, after)
    made: list[tuple[str, Envelope]] = []
    for at, tool in enumerate(envelope.tools):
        source = f"tool:{tool.name}"
        other = replace(tool, description=f"{tool.description}!")
        tools = (*envelope.tools[:at], other, *envelope.tools[at + 1 :])
        if source not in covered:
            made.append((source, replace(envelope, tools=tools)))
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


@modest
@given(sessions(), op_lists, promotions, st.data())
def test_what_moves_outside_of_what_reasons_cover_is_refused(
    entries: list[Entry], ops: list[PatchOp], promotion: Promotion, data: st.DataObject
) -> None:
    before = replay(entries)
    after = patched(before, ops)
    candidates = mutations(before, after)
    assume(candidates)
    source, envelope = data.draw(st.sampled_from(candidates))
    mutated = replace(after, envelope=envelope)
    agreement = agreement_of(before, mutated, promotion)
    with pytest.raises(PrefixMoved):
        require_reason(agreement)
    assert agreement.broke is not None
    if not source.startswith("message:") and source != LIBRARY_SOURCE:
        assert source in {place.source for place in agreement.broke.unexplained}
