"""Agents on disk, in our own format and in the formats that people already use.

Laws: nothing that is read is ever run. Nothing outside an agent's root is opened. Every fault in a
file is reported as a problem with its place, and affects only the faulty part.

Private: see `lamina` for what is public.
"""

from lamina.adapters.agents.agent_reader import AgentFolder, holds_agent, read_agent
from lamina.adapters.agents.agent_yaml import write_skeleton

__all__ = ["AgentFolder", "holds_agent", "read_agent", "write_skeleton"]
