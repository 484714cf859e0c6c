"""Agents on disk, in our own format and in those that people already have.

Laws: nothing that is read is ever run. Nothing outside an agent's root is opened. Whatever is wrong
with a file is a problem with its place, and costs only the part that is wrong.

Private: see `lamina` for what is public.
"""

from lamina.adapters.agents.agent_reader import AgentFolder, holds_agent, read_agent
from lamina.adapters.agents.agent_yaml import write_skeleton

__all__ = ["AgentFolder", "holds_agent", "read_agent", "write_skeleton"]
