"""What a question would choose of an agent's rules, references and tools, and what only just not.

Law: an agent is opened as a session opens it, and what its folder brings counts if it was trusted.
"""

from pathlib import Path
from typing import TYPE_CHECKING

from lamina.adapters.providers.tokens import EncodingCounter
from lamina.apps.views.agents import ENCODING
from lamina.apps.views.search_candidates import CandidateSources, gather_candidates
from lamina.apps.wiring.trust import FolderTrust
from lamina.core.values.agent_choice import AgentChoice
from lamina.core.values.selection import Preset
from lamina.engine.sources.agent_choice import choose_candidates

if TYPE_CHECKING:
    from lamina.adapters.embed.index.sqlite_index import SqliteIndex


class NobodyToAsk:
    """What a folder brings counts if it was trusted before."""

    async def agree(self, folder: FolderTrust) -> bool:  # noqa: ARG002
        return False

    def say(self, line: str) -> None:
        """Whatever is odd stands in the choice."""


async def choose_for(
    question: str, agent: Path, workspace: Path, preset: Preset | None, index: "SqliteIndex"
) -> AgentChoice:
    """What a question would choose of the agent at a path.

    Raises:
        ExtraMissing: what searches, or what speaks to its servers, is not installed.
        UsageError: the agent cannot be read.
    """
    sources = CandidateSources(agents=(str(agent),), workspace=workspace)
    candidates = await gather_candidates(sources, NobodyToAsk())
    count = EncodingCounter(ENCODING).count
    return await choose_candidates(question, candidates, index, count, preset=preset)
