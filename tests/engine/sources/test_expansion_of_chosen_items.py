"""What comes along with what was chosen, step by step."""

import pytest
from tests.fakes.index import IndexFake

from lamina.core.values.item import ItemId
from lamina.core.values.selection import Document, SearchSettings, SelectedItem
from lamina.engine.sources.related_items import ChosenFrom, expand_all
from lamina.errors import InvalidSetting

pytestmark = pytest.mark.anyio
A, B, C, D = (ItemId(f"note:{name}") for name in "abcd")
DOCUMENTS = [Document(item, (f"all about {item}",)) for item in (A, B, C, D)]
ALIKE: dict[str, dict[str, float]] = {
    A: {A: 1.0, B: 0.9, C: 0.2},
    B: {B: 1.0, A: 0.9, C: 0.8},
    C: {C: 1.0, B: 0.8, D: 0.3},
}
CHOSEN = (SelectedItem(item=A, score=0.6, chunk=f"all about {A}"),)


@pytest.mark.parametrize("graph", [False, True])
@pytest.mark.parametrize(("depth", "added"), [(0, ""), (1, "b"), (2, "bc"), (9, "bc")])
async def test_each_step_goes_on_from_what_the_last_one_added(
    depth: int, added: str, graph: bool
) -> None:
    index = IndexFake(ALIKE)
    corpus = await index.load(DOCUMENTS)
    settings = SearchSettings(expansion_depth=depth, expansion_graph=graph)
    (found,) = await expand_all([ChosenFrom(corpus=corpus, items=CHOSEN, settings=settings)])
    assert [item.item for item in found] == [ItemId(f"note:{name}") for name in added]
    assert [item.source for item in found] == [A, B][: len(added)]
    assert all(item.origin == "expansion" for item in found)
    # A graph takes the place of searches, and no graph is built that nobody wants.
    assert bool(index.graphs) == (graph and depth > 0)
    assert bool(index.asked) == (not graph and depth > 0)


async def test_nothing_chosen_is_nothing_expanded() -> None:
    index = IndexFake(ALIKE)
    settings = SearchSettings(expansion_depth=3)
    corpus = await index.load(DOCUMENTS)
    assert await expand_all([ChosenFrom(corpus=corpus, settings=settings)]) == [()]
    assert index.asked == []


def test_whether_by_graph_is_a_flag() -> None:
    with pytest.raises(InvalidSetting, match="expansion_graph"):
        SearchSettings(expansion_graph="yes")  # type: ignore[arg-type]
