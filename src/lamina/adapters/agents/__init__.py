"""Reads agents from disk, in Lamina's own format and in other common formats.

Laws: files are read, never run. Nothing outside an agent's root is opened. Every error in a file is
reported as a problem with its location, and affects only the faulty part.

Private: see `lamina` for what is public.
"""

from lamina.adapters.agents.agent_reader import AgentFolder, holds_agent, read_agent
from lamina.adapters.agents.agent_yaml import write_skeleton

__all__ = ["AgentFolder", "holds_agent", "read_agent", "write_skeleton"]
