"""What a search gave a model that called it.

Laws: the numbers of its sources are not the search's to give: all searches of a turn share one
numbering, which belongs to whoever runs them. What a person should know of a search is said to the
person, and is no part of what the model reads.
"""

from collections.abc import Sequence

from lamina.core.text import open_block
from lamina.core.values.message import ToolText
from lamina.core.values.note import NoteSearchResult
from lamina.core.values.tool import ToolOutput
from lamina.engine.runners.answer import CitedSource
from lamina.engine.runners.citations import list_sources, render_found


class SearchOutput(ToolOutput, frozen=True, kw_only=True):
    """The output of a search, with what it found. `name` is that of its block and `instruction`
    what the block says of itself, `query` what was searched for."""

    name: str
    instruction: str
    query: str
    result: NoteSearchResult

    def render(self, known: Sequence[CitedSource] = ()) -> str:
        """The output where sources are `known` from earlier searches of the turn."""
        block = self.block(known)
        if not block.time_range:
            return block.text
        return f"{open_block(block.name, block.time_range)}\n{block.text}\n</{block.name}>"

    def block(self, known: Sequence[CitedSource] = ()) -> ToolText:
        """The output as a text of its own, for one request."""
        text = render_found(self.name, self.instruction, self.result.hits, known)
        text = "\n\n".join(filter(None, (text, self.result.unsearched)))
        return ToolText(name=self.name, text=text, time_range=self.result.time_range)


def render_searches(
    outputs: Sequence[SearchOutput],
) -> tuple[tuple[ToolText, ...], tuple[CitedSource, ...]]:
    """The outputs of several searches, each as a block of its own, and the sources of all: what an
    earlier one found keeps its number."""
    blocks: list[ToolText] = []
    sources: tuple[CitedSource, ...] = ()
    for output in outputs:
        blocks.append(output.block(sources))
        sources = list_sources(output.result.hits, sources)
    return tuple(blocks), sources
