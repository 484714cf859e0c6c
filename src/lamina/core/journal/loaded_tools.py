"""Which tools the results that stand in a conversation have loaded.

Law: a name is loaded once. Where two results load it, the first one's definition is the one that is
sent, since that of a tool which was sent never changes.
"""

from collections.abc import Iterable, Mapping

from msgspec.structs import replace

from lamina.core.journal.state import State
from lamina.core.values.message import LoadedTool, Message


def load_tools(
    loaded: Mapping[str, LoadedTool], messages: Iterable[Message]
) -> Mapping[str, LoadedTool]:
    """What is `loaded` once these messages stand, too."""
    tools = [t for message in messages for b in message.loads.values() for t in b.tools]
    return {tool.definition.name: tool for tool in reversed(tools)} | dict(loaded)


def move_loaded(before: State, state: State) -> State:
    """The state behind a patch: what loaded a tool may be gone."""
    if not before.loaded or before.envelope.cached is state.envelope.cached:
        return state
    return replace(state, loaded=load_tools({}, state.envelope.cached))
