"""What a search of the workspace found, and what an answer cites of it, on a screen."""

from rich.text import Text

from lamina.cli.terminal_text import one_line, visible
from lamina.faces.notes import place_of
from lamina.runners.answer import Answer
from lamina.runners.citations import list_footnotes
from lamina.values.note import Hit, NoteSearchResult


def show_hits(found: NoteSearchResult, width: int) -> Text:
    """Each passage by its place and how well it fits, with its beginning."""
    return Text("\n".join(list_hits(found, width)))


def list_hits(found: NoteSearchResult, width: int) -> list[str]:
    """The same as plain lines."""
    if not found.hits:
        return [f"nothing fits in {found.searched:,} notes"]
    return [line for hit in found.hits for line in _lines(hit, width)]


def render_footnotes(answer: Answer) -> list[str]:
    """What the numbers of an answer mean, a line each; none if it says so itself."""
    return [visible(line) for line in list_footnotes(answer.text, answer.sources)]


def _lines(hit: Hit, width: int) -> list[str]:
    score = f"{hit.score:.2f}" if hit.score is not None else "words"
    under = f"  ·  {one_line(hit.heading)}" if hit.heading else ""
    return [
        f"{score:>5}  {visible(place_of(hit))}{under}",
        f"       {one_line(hit.text, width - 8)}",
    ]
