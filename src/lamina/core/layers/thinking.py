"""Selects the thinking that a request may carry, for models that bind it to the preceding content.

Laws: a block is sent if and only if everything before it, other thinking aside, is unchanged since
the model thought it, and the thinking sent before it is the thinking that preceded it then;
thinking may be missing at the start. The same is sent for all models that bind: a model that cannot
read another's thinking skips it, and it is not charged for.

The rules are those of platform.claude.com/docs/en/build-with-claude/preserved-thinking, read on
2026-11-18; they have not been tested against the API itself.
"""

from collections.abc import Container, Iterable, Sequence
from hashlib import sha256

from msgspec import UNSET
from msgspec.structs import replace

from lamina.core.codec import segment_digest
from lamina.core.values.message import Block, Message, Thinking, ThinkingBinding
from lamina.core.values.prompt import Prompt, Segment, Standing, run_on

# Vendors whose thinking is recorded with its binding.
BINDING_WIRE = "anthropic"
_THINKING_ALONE = "thinking alone"


def is_signed(block: Thinking) -> bool:
    """Return whether its provider may accept it back."""
    return bool(block.signature or block.redacted)


def is_valid(block: Thinking, standing: Standing) -> bool:
    """Return whether a block may be sent after the standing content. If its binding was not
    recorded, the provider decides."""
    binding = block.binding
    if binding is UNSET or not binding.prefix:
        return True
    return binding.prefix == prefix_digest(standing) and standing.thought in ("", binding.follows)


def advance(standing: Standing, segments: Sequence[Segment], *, is_whole: bool = True) -> Standing:
    """Return the content that stands after the segments of one message, or after the first of
    them."""
    bare, thought = standing.bare, standing.thought
    alone = is_whole and bool(segments)
    for segment in segments:
        if isinstance(content := segment.content, Thinking):
            thought = thought_digest(content)
            continue
        alone = False
        digest = segment.digest
        if segment.role == "assistant":
            # Whether it opens its message may depend on omitted thinking.
            digest = segment_digest("assistant", content, opens=False)
        bare = run_on(bare, digest)
    if alone:
        # Without its thinking there would be no such message.
        bare = run_on(bare, _THINKING_ALONE)
    return replace(standing, bare=bare, thought=thought)


def bind_thinking(
    blocks: Iterable[Block], standing: Standing | None, wire: str
) -> tuple[Block, ...]:
    """Return the blocks of an answer to a request that ends with `standing`, its thinking with its
    binding."""
    if wire != BINDING_WIRE:
        return tuple(blocks)
    bound: list[Block] = []
    for block in blocks:
        if isinstance(block, Thinking) and is_signed(block):
            binding = ThinkingBinding()
            if standing is not None:
                prefix = prefix_digest(standing)
                binding = ThinkingBinding(prefix=prefix, follows=standing.thought)
                standing = replace(standing, thought=thought_digest(block))
            bound.append(replace(block, binding=binding))
            continue
        bound.append(block)
        if standing is not None:
            digest = segment_digest("assistant", block, opens=False)
            standing = replace(standing, bare=run_on(standing.bare, digest))
    return tuple(bound)


def find_thinking(prompt: Prompt, start: int = 0) -> set[str]:
    """Return the thinking in a prompt from one segment on, by digest."""
    segments = prompt.since(max(start, prompt.ends[0]))
    return {thought_digest(s.content) for s in segments if isinstance(s.content, Thinking)}


def missing_thinking(message: Message, there: Container[str]) -> set[str]:
    """Return the thinking of a message that is missing from `there`, if its binding is known."""
    bound = (b for b in message.blocks if isinstance(b, Thinking) and b.binding is not UNSET)
    return {digest for block in bound if (digest := thought_digest(block)) not in there}


def prefix_digest(standing: Standing) -> str:
    """Return the digest of everything that stands, thinking aside."""
    return run_on(standing.front, standing.bare)


def thought_digest(block: Thinking) -> str:
    """Return the digest that identifies a block of thinking."""
    return sha256((block.signature or block.redacted).encode()).hexdigest()[:16]
