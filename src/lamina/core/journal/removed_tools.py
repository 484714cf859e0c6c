"""Which tools were removed from a session, and which of those in its list came with a runner.

Law: what a person or a hook removes stays away until somebody gives it back; what the engine does
to the list removes nothing and gives nothing back.
"""

from msgspec.structs import replace

from lamina.core.journal.state import State
from lamina.core.values.patch import Patch, ToolsRemove, ToolsReplace, op_reason

# Who keeps the list of tools, and who lets chosen ones join a list that was sent already.
TOOLS = "lamina.tools"
TOOLS_JOIN = "lamina.tools.join"
TAKEN_OUT = "it was taken out of the session"
# Whose patches speak for a person or a hook is whose name does not begin with this.
_ENGINE = "lamina."


def move_tools(before: State, state: State, transformer: str, patch: Patch) -> State:
    """What a patch that `transformer` made of `before` removed of the tools and gave back."""
    ops = [op for op in patch.ops if isinstance(op, ToolsReplace | ToolsRemove)]
    if not ops:
        return state
    withdrawn, hosted = dict(state.withdrawn), state.hosted
    names = {tool.name for tool in before.envelope.tools}
    listed = {tool.name for tool in before.envelope.tool_list}
    for op in ops:
        if isinstance(op, ToolsRemove):
            withdrawn |= dict.fromkeys(op.names, op_reason(op))
            names -= {*op.names}
            continue
        offered = {tool.name for tool in op.tools if tool.name not in op.barred}
        if transformer in (TOOLS, TOOLS_JOIN):
            hosted |= offered - listed
            continue
        if not transformer.startswith(_ENGINE):
            # A runner would offer its tools again; others come back only by being given.
            leavers = ((names & hosted) | {*op.barred}) - offered
            withdrawn |= dict.fromkeys(sorted(leavers), op_reason(op))
        withdrawn = {name: why for name, why in withdrawn.items() if name not in offered}
        hosted -= offered - names
        names = offered
    return replace(state, withdrawn=withdrawn, hosted=hosted)
