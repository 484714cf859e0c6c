"""Which results of tools stand shortened, and what all of each is.

Laws: what the engine shortened is still to be had: the digest of all of it stays, also when its
message gave way to a summary. What a person or a hook put in the place of a result takes its place
for good.
"""

from collections.abc import Mapping

from msgspec.structs import replace

from lamina.core.codec import digest_bytes
from lamina.core.journal.state import State
from lamina.core.values.message import Message, ToolResult
from lamina.core.values.patch import MessagesCachedReplace, Patch, ResultsReplace

# Whose patches speak for a person or a hook is whose name does not begin with this.
_ENGINE = "lamina."


def keep_digests(state: State, message: str, wholes: Mapping[str, str]) -> State:
    """The state, with what all of the results of a message is, by call; in the order of calls'
    ids, in which an entry's are read back."""
    digests = {(message, call): wholes[call] for call in sorted(wholes)}
    return replace(state, shortened={**state.shortened, **digests})


def move_digests(before: State, state: State, transformer: str, patch: Patch) -> State:
    """What a patch that `transformer` made of `before` shortened, or replaced for good."""
    for op in patch.ops:
        if isinstance(op, ResultsReplace) and transformer.startswith(_ENGINE):
            old = results_of(next(m for m in before.envelope.cached if m.id == op.message))
            news = {call: whole_digest(before, op.message, old[call]) for call in old}
            calls = {result.call_id for result in op.results}
            news = {call: digest for call, digest in news.items() if call in calls}
            state = keep_digests(state, op.message, news)
        elif isinstance(op, ResultsReplace | MessagesCachedReplace) and state.shortened:
            state = _without_replaced(before, state)
    return state


def _without_replaced(before: State, state: State) -> State:
    old = _texts(before)
    new = _texts(state)
    digests = {
        key: digest
        for key, digest in state.shortened.items()
        if key not in old or old[key] == new.get(key)
    }
    return replace(state, shortened=digests)


def _texts(state: State) -> dict[tuple[str, str], str]:
    """The results that stand, by message and call."""
    return {
        (message.id, call): result.text
        for message in state.envelope.cached
        for call, result in results_of(message).items()
    }


def results_of(message: Message) -> dict[str, ToolResult]:
    """The results in a message, by call."""
    return {block.call_id: block for block in message.blocks if isinstance(block, ToolResult)}


def whole_digest(state: State, message: str, result: ToolResult) -> str:
    """The digest of all that a result was, before anything of it was taken out."""
    return state.shortened.get((message, result.call_id)) or digest_bytes(result.text.encode())
