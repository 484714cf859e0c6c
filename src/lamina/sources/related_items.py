"""What is like the chosen items, and what is like that.

Law: nothing comes in twice, and nothing that was there before is expanded: every step goes on from
what the last one added.
"""

from collections.abc import Sequence

from lamina.ports import Corpus
from lamina.values.selection import Origin, Query, SearchSettings, SelectedItem


async def expand_chosen(
    corpus: Corpus, chosen: tuple[SelectedItem, ...], settings: SearchSettings
) -> tuple[SelectedItem, ...]:
    """What comes along, as deep as the settings say: by searches from the chunks of the chosen
    items, or by a graph of all documents that is built once and kept."""
    from lamina.selection.expansion import expand_by_graph, expansion_query, graph_shape

    items, last = chosen, chosen
    for _ in range(settings.expansion_depth):
        if not last:
            break
        if settings.expansion_graph:
            graph = await corpus.graph(*graph_shape(settings))
            last = expand_by_graph(graph, last, items, settings)
        else:
            query = expansion_query(corpus.documents, last, settings)
            last = await _search(corpus, query, items, settings, "expansion")
        items += last
    return items[len(chosen) :]


async def expand_results(
    corpus: Corpus,
    results: Sequence[tuple[str, str]],
    chosen: tuple[SelectedItem, ...],
    settings: SearchSettings,
) -> tuple[SelectedItem, ...]:
    """What is like the results of tools, which come as (name, text)."""
    from lamina.selection.expansion import result_query

    return await _search(corpus, result_query(results, settings), chosen, settings, "result")


async def _search(
    corpus: Corpus,
    query: Query,
    items: tuple[SelectedItem, ...],
    settings: SearchSettings,
    origin: Origin,
) -> tuple[SelectedItem, ...]:
    from lamina.selection.expansion import expand_by_search

    if not query.parts:
        return ()
    scores = await corpus.score([part.text for part in query.parts])
    return expand_by_search(corpus.documents, scores, query, items, settings, origin=origin)
