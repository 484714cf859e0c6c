"""Patches without what only repeats the history they apply to.

Law: a shortened patch does what the whole one does. A journal that held the history of a session
again with every turn would grow with the square of its length.
"""

from msgspec.structs import replace

from lamina.core.journal.patch_effects import apply_op
from lamina.core.values.collections import Chain
from lamina.core.values.envelope import Envelope
from lamina.core.values.message import Message
from lamina.core.values.patch import MessagesCachedReplace, Patch, PatchOp


def shorten_patch(patch: Patch, envelope: Envelope, sent: bool) -> Patch:
    """The patch for `envelope`, with the messages that it leaves in their places counted and not
    repeated; `sent` says whether anything was sent yet.

    Raises:
        InvalidPatch: an op cannot be applied.
    """
    if not any(isinstance(op, MessagesCachedReplace) for op in patch.ops):
        return patch
    ops: list[PatchOp] = []
    for op in patch.ops:
        if isinstance(op, MessagesCachedReplace) and not op.kept:
            kept = _count_kept(envelope.cached, op.messages)
            op = replace(op, kept=kept, messages=op.messages[kept:])
        ops.append(op)
        if len(ops) < len(patch.ops):
            envelope, _ = apply_op(envelope, op, None, sent)
    return replace(patch, ops=tuple(ops))


def _count_kept(cached: Chain[Message], messages: tuple[Message, ...]) -> int:
    pairs = zip(cached, messages, strict=False)
    differing = (place for place, (old, new) in enumerate(pairs) if old is not new and old != new)
    return next(differing, min(len(cached), len(messages)))
