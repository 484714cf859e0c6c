"""What is like what was chosen, and what is like that.

Law: nothing comes in twice, and nothing is expanded that was there before: each step goes on from
what the last one added.
"""

from lamina.ports import Corpus
from lamina.values.selection import SearchSettings, SelectedItem


async def expand_chosen(
    corpus: Corpus, chosen: tuple[SelectedItem, ...], settings: SearchSettings
) -> tuple[SelectedItem, ...]:
    """What comes along, as deep as the settings say: by searches from the chunks of what was
    chosen, or by a graph of all documents that is built once and kept."""
    added: tuple[SelectedItem, ...] = ()
    last = chosen
    for _ in range(settings.expansion_depth):
        if not last:
            break
        step = _by_graph if settings.expansion_graph else _by_search
        last = await step(corpus, last, chosen + added, settings)
        added += last
    return added


async def _by_search(
    corpus: Corpus,
    last: tuple[SelectedItem, ...],
    taken: tuple[SelectedItem, ...],
    settings: SearchSettings,
) -> tuple[SelectedItem, ...]:
    from lamina.selection.expansion import expand_by_search, expansion_query

    query = expansion_query(corpus.documents, last, settings)
    if not query.parts:
        return ()
    scores = await corpus.score([part.text for part in query.parts])
    return expand_by_search(corpus.documents, scores, query, taken, settings)


async def _by_graph(
    corpus: Corpus,
    last: tuple[SelectedItem, ...],
    taken: tuple[SelectedItem, ...],
    settings: SearchSettings,
) -> tuple[SelectedItem, ...]:
    from lamina.selection.expansion import expand_by_graph, graph_shape

    graph = await corpus.graph(*graph_shape(settings))
    return expand_by_graph(graph, last, taken, settings)
