"""What a search of the workspace found, and what an answer cites of it, on a screen."""

from lamina.apps.cli.terminal_text import one_line, visible_name
from lamina.core.audit.vocabulary import count_of
from lamina.core.values.note import Hit, NoteSearchResult
from lamina.engine.runners.answer import Answer
from lamina.engine.runners.citations import list_footnotes


def list_hits(result: NoteSearchResult, width: int) -> str:
    """A passage per line, with its place and how well it fits, and below it how it begins."""
    if not result.hits:
        return f"nothing fits in {count_of(result.searched, 'note')}"
    return "\n".join(_lines(hit, width) for hit in result.hits)


def render_footnotes(answer: Answer) -> list[str]:
    """What the numbers of an answer mean, a line each; none if it says so itself."""
    return [visible_name(line) for line in list_footnotes(answer.text, answer.sources)]


def _lines(hit: Hit, width: int) -> str:
    score = f"{hit.score:.2f}" if hit.score is not None else "words"
    under = f"  ·  {one_line(hit.heading)}" if hit.heading else ""
    head = f"{score:>5}  {visible_name(hit.place)}{under}"
    return f"{head}\n       {one_line(hit.text, width - 7)}"
