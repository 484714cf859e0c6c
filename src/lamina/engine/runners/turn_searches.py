"""The searches that a model calls for in the course of one turn.

Laws: they share one numbering of sources. What a search found is written down before its result is,
so that a turn that is taken up again goes on with the same numbers. The question follows the
documents.
"""

from collections.abc import Mapping
from typing import Any

from lamina.core.ports import ToolHost
from lamina.core.text import QUERY_FRAME
from lamina.core.values.tool import ToolOutput, Toolset
from lamina.engine.runners.mode import RunContext
from lamina.engine.runners.search_output import SearchOutput


class TurnSearches:
    """A tool host around another one, for the calls in the answer to `request`."""

    def __init__(self, host: ToolHost, run: RunContext, request: str) -> None:
        self._host = host
        self._run = run
        self._request = request

    async def toolset(self) -> Toolset:
        return await self._host.toolset()

    async def call(self, name: str, arguments: Mapping[str, Any]) -> ToolOutput:
        output = await self._host.call(name, arguments)
        if not isinstance(output, SearchOutput):
            return output
        text = await self._run.add_search(output, self._request)
        question = self._run.session.state.turn.question
        if question.strip():
            text = f"{text}\n\n{QUERY_FRAME}{question}"
        return ToolOutput(text=text)
