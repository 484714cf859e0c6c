"""What a patch makes of a state: its envelope, what stands in it, and the reasons that it gives.

Law: a patch applies whole or raises and changes nothing.
"""

from collections.abc import Iterable

from msgspec.structs import replace

from lamina.core.journal.laid_versions import (
    StandingItems,
    apply_lay_ops,
    find_laid_versions,
    has_grown,
    laid_items,
    lay_uses,
)
from lamina.core.journal.patch_effects import (
    apply_op,
    calls_wait,
    check_appended,
    check_reasons,
    latest_in_force,
)
from lamina.core.journal.reasons import RecordedReason, find_moved_parts, reason_of
from lamina.core.journal.state import State
from lamina.core.values.envelope import Envelope
from lamina.core.values.patch import (
    CompactionApply,
    MessagesCachedAppend,
    OnceOps,
    OptionsSet,
    Patch,
    PatchOp,
    op_name,
    op_reason,
)
from lamina.errors import InvalidPatch


def require_contents(state: State, ops: Iterable[PatchOp]) -> None:
    """Raises:
    InvalidPatch: an op lays something down whose content is not there.
    """
    for op in ops:
        for item, version in laid_items(op):
            if (item, version) not in state.library.items:
                problem = f"no content is kept of {item!r}, version {version[:8]!r}"
                raise InvalidPatch(op_name(op), problem)


def patch_state(state: State, transformer: str, patch: Patch) -> State:
    """The state after a patch of `transformer`.

    Raises:
        InvalidPatch: an op is wrong, or cannot be applied.
    """
    require_contents(state, patch.ops)
    before, library, requests = state.envelope, state.library, state.requests
    standing, in_force, cuts = library.standing, library.in_force, requests.cuts
    check_reasons(patch)
    envelope, start, reasons = before, state.turn.start, []
    behind, once = state.turn.behind_results, state.once
    stood = StandingItems(envelope=before, standing=standing)
    for op in patch.ops:
        if isinstance(op, OptionsSet) and op.scope == "uncached":
            apply_op(envelope, op, start, False)
            once += (OnceOps(transformer=transformer, ops=(op,)),)
            continue
        if isinstance(op, MessagesCachedAppend) and calls_wait(envelope):
            check_appended(op)
            behind += op.messages
            continue
        after, start = apply_op(envelope, op, start, state.requests.sent is not None, stood)
        if op_reason(op):
            reasons.append(reason_of(op, envelope, after))
        envelope = after
    old, new = before.cached, envelope.cached
    if has_grown(before, envelope):
        # It only grew, if at all: what was looked through before is not looked through again.
        for message in new.since(len(old)):
            if context := message.context:
                standing = lay_uses(standing, context.uses)
                in_force = in_force if context.in_force is None else context.in_force
    else:
        in_force = latest_in_force(new)
        standing = find_laid_versions(envelope, standing)
    for op in patch.ops:
        if isinstance(op, CompactionApply):
            dropped = min(op.first_kept, len(before.cached)) - max(0, op.after)
            if dropped > 0:
                cuts = (*cuts, (op.reason, dropped))
            if op.read or op.modified:
                state = replace(state, read_files=op.read, modified_files=op.modified)
    return replace(
        state,
        envelope=envelope,
        once=once,
        library=replace(library, standing=apply_lay_ops(standing, patch), in_force=in_force),
        turn=replace(state.turn, start=start, behind_results=behind),
        requests=replace(
            requests,
            reasons=requests.reasons + _net_reasons(reasons, before, envelope),
            cuts=cuts,
        ),
    )


def _net_reasons(
    reasons: list[RecordedReason], before: Envelope, after: Envelope
) -> tuple[RecordedReason, ...]:
    """The reasons of a patch, each with what its op moved and no later one moved back."""
    if len(reasons) < 2:
        return tuple(reasons)
    net = find_moved_parts(before, after)
    return tuple(replace(reason, moved=reason.moved.within(net)) for reason in reasons)
