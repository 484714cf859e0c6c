"""What a search gave a model that called it.

Law: the numbers of its sources are not the search's to give: all searches of a turn share one
numbering, which belongs to whoever runs them.
"""

from collections.abc import Sequence

from lamina.runners.answer import CitedSource
from lamina.runners.citations import render_found
from lamina.text import open_block
from lamina.values.note import NoteSearchResult
from lamina.values.tool import ToolOutput


class SearchOutput(ToolOutput, frozen=True, kw_only=True):
    """The output of a search, with what it found. `name` is that of its block and `instruction`
    what the block says of itself, `query` what was searched for."""

    name: str
    instruction: str
    query: str
    result: NoteSearchResult

    def render(self, known: Sequence[CitedSource] = ()) -> str:
        """The output where sources are `known` from earlier searches of the turn."""
        text = render_found(self.name, self.instruction, self.result.hits, known)
        text = "\n\n".join((text, *self.result.warnings))
        if not self.result.time_range:
            return text
        return f"{open_block(self.name, self.result.time_range)}\n{text}\n</{self.name}>"
