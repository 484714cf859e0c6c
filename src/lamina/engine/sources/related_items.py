"""Finds items similar to the chosen ones, and items similar to those.

Laws: no item is added twice, and no item that was there before is expanded: every step continues
from what the last one added. Rules and references bring tools, and tools bring them, if both
searches are expanded that far; the search that an item belongs to decides whether it may come.
"""

from collections.abc import Sequence

from msgspec import Struct

from lamina.core.ports import Corpus
from lamina.core.values.item import ItemId
from lamina.core.values.selection import (
    Document,
    Origin,
    Query,
    QueryPart,
    SearchSettings,
    SelectedItem,
)


class Pool(Struct, frozen=True, kw_only=True):
    """The candidates of one search. `candidates` are all that others may bring along, `there` those
    already included.
    """

    documents: Sequence[Document] = ()
    settings: SearchSettings = SearchSettings()
    candidates: frozenset[ItemId] = frozenset()
    there: frozenset[ItemId] = frozenset()


class ChosenFrom(Struct, frozen=True, kw_only=True):
    """The choices from a corpus, and the settings used. Without a corpus there are none."""

    settings: SearchSettings
    corpus: Corpus | None = None
    items: tuple[SelectedItem, ...] = ()

    @property
    def depth(self) -> int:
        return self.settings.expansion_depth


async def expand_all(choices: Sequence[ChosenFrom]) -> list[tuple[SelectedItem, ...]]:
    """Return the items that each choice brings along, to the depth in the settings: by searches
    from the chunks of the chosen items, or by a graph of a choice's own documents, built once and
    kept.
    """
    items = [choice.items for choice in choices]
    last = list(items)
    for step in range(1, 1 + max((choice.depth for choice in choices), default=0)):
        if not any(last):
            break
        last = [
            await _expand(choices, place, last, items[place], step) for place in range(len(items))
        ]
        items = [before + new for before, new in zip(items, last, strict=True)]
    return [after[len(choice.items) :] for choice, after in zip(choices, items, strict=True)]


async def _expand(
    choices: Sequence[ChosenFrom],
    place: int,
    last: Sequence[tuple[SelectedItem, ...]],
    taken: tuple[SelectedItem, ...],
    step: int,
) -> tuple[SelectedItem, ...]:
    """Return the items that one step adds to the choice at `place`, from what the last one added to
    each.
    """
    from lamina.core.selection.expansion import (
        expand_by_graph,
        expansion_query,
        graph_shape,
        take_nearest,
    )

    choice, settings = choices[place], choices[place].settings
    corpus = choice.corpus
    if corpus is None or not settings.search:
        return ()
    parts: list[QueryPart] = []
    additions: tuple[SelectedItem, ...] = ()
    for source, chosen in zip(choices, last, strict=True):
        if source.corpus is None or not chosen or min(source.depth, choice.depth) < step:
            continue
        if source is choice and settings.expansion_graph:
            graph = await corpus.graph(*graph_shape(settings))
            additions += expand_by_graph(graph, chosen, taken, settings)
        else:
            parts += expansion_query(source.corpus.documents, chosen, settings).parts
    query = Query(parts=tuple(parts))
    additions += await _search(corpus, query, taken, settings, "expansion")
    return take_nearest(additions, (), settings)


async def expand_results(
    corpus: Corpus,
    results: Sequence[tuple[str, str]],
    chosen: tuple[SelectedItem, ...],
    settings: SearchSettings,
) -> tuple[SelectedItem, ...]:
    """Return items similar to the results of tools, which are passed as (name, text)."""
    from lamina.core.selection.expansion import result_query

    return await _search(corpus, result_query(results, settings), chosen, settings, "result")


async def _search(
    corpus: Corpus,
    query: Query,
    items: tuple[SelectedItem, ...],
    settings: SearchSettings,
    origin: Origin,
) -> tuple[SelectedItem, ...]:
    from lamina.core.selection.expansion import expand_by_search

    if not query.parts:
        return ()
    scores = await corpus.score([part.text for part in query.parts])
    return expand_by_search(corpus.documents, scores, query, items, settings, origin=origin)
