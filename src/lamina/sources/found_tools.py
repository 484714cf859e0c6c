"""Tools that the model looks for itself, in the middle of a turn.

Laws: what it can find is what the session may use: nothing that was removed or is withheld. What it
can call already is only named, so that the same words, asked again, bring others. All that one
search brings takes no more than as many tools of usual size: every later request pays for it, too.
What is found stands behind the results from the next request on: nothing that was sent moves.
"""

from collections.abc import Iterable, Sequence
from statistics import median

from msgspec import Struct
from msgspec.structs import replace

from lamina.assembly.engine_tools import FOUND_TOKENS, MOST_FOUND
from lamina.assembly.inclusion import sort_tools
from lamina.assembly.tools import describe_tool, is_described
from lamina.journal import State
from lamina.layers import Assembler
from lamina.sources.candidates import tool_document
from lamina.sources.selector import Selector
from lamina.values.entry import FoundTool
from lamina.values.item import Attachment, Item, ItemId, Provenance
from lamina.values.request import Attachments
from lamina.values.selection import SearchSettings, SelectedItem
from lamina.values.tool import OfferedTool

# Of how many that fit best the usual size is taken.
COMPARED = 50
NOTHING_FOUND = "No other tool fits that. Say in other words what it has to do."


class ToolFinds(Struct, frozen=True, kw_only=True):
    """What a search of the model's brought: its result as text, and the tools to be described."""

    text: str
    items: tuple[Item, ...] = ()
    found: tuple[FoundTool, ...] = ()
    is_error: bool = False


async def rank_tools(
    selector: Selector, tools: Sequence[OfferedTool], query: str, floor: float
) -> tuple[SelectedItem, ...]:
    """The tools that have to do with a query, the one that fits best first."""
    from lamina.selection.question import split_question
    from lamina.selection.scores import rank_documents

    parts = split_question(query)
    if selector.index is None or not parts.parts:
        return ()
    documents = [tool_document(tool) for tool in tools]
    corpus = await selector.index.load(documents, selector.progress)
    scores = await corpus.score([part.text for part in parts.parts])
    return rank_documents(documents, scores, parts, SearchSettings(floor=floor))


async def find_tools(
    selector: Selector,
    state: State,
    tools: Sequence[OfferedTool],
    query: str,
    assembler: Assembler,
    room: int,
) -> ToolFinds:
    """What fits a query of the model's, of the `tools` there are; not more than `room` tokens."""
    if selector.index is None:
        return ToolFinds(text=f"Tools cannot be searched: {selector.no_index}.", is_error=True)
    inclusion = sort_tools(state, tools)
    usable = {tool.id: tool for tool in (*inclusion.agent, *inclusion.present)}
    try:
        floor = state.settings.tool_search.floor
        ranking = await rank_tools(selector, list(usable.values()), query, floor)
    # Whatever goes wrong in a search, the model is told, and goes on with what it has.
    except Exception as error:  # noqa: BLE001
        return ToolFinds(text=f"The search failed: {type(error).__name__}: {error}", is_error=True)
    callable_names = {tool.name for tool in state.envelope.tools}
    earlier = {found.item for entry in state.turn.searches for found in entry.found}
    known: list[str] = []
    hits: list[tuple[SelectedItem, Item, str]] = []
    left = min(room, FOUND_TOKENS) - assembler.count_text(_say((), ()))
    sizes = [assembler.item_tokens(describe_tool(usable[h.item])) for h in ranking[:COMPARED]]
    spare = MOST_FOUND * median(sizes) if sizes else 0.0
    for place, hit in enumerate(ranking):
        tool = usable[hit.item]
        name = tool.definition.name
        if name in callable_names or hit.item in earlier or is_described(tool, state):
            if place < MOST_FOUND:
                known.append(name)
                left -= assembler.count_text(f", {name}")
            continue
        if len(hits) == MOST_FOUND:
            break
        item = describe_tool(tool)
        size = assembler.item_tokens(item)
        cost = size + assembler.count_text(f", {name}")
        # The best one comes, however long it is.
        if cost <= left and (size <= spare or not hits):
            left, spare = left - cost, spare - size
            hits.append((hit, item, name))
    return ToolFinds(
        text=_say([name for _, _, name in hits], known),
        items=tuple(item for _, item, _ in hits),
        found=tuple(
            FoundTool(item=item.id, version=item.version, score=hit.score) for hit, item, _ in hits
        ),
    )


def _say(names: Sequence[str], known: Sequence[str]) -> str:
    lines = [NOTHING_FOUND]
    if names:
        lines = [f"Found, described below, to be called through use_tool: {', '.join(names)}"]
    if known:
        lines.append(f"To be called already: {', '.join(known)}")
    return "\n".join(lines)


def attach_finds(state: State, removed: Iterable[ItemId], found: Attachments) -> Attachments:
    """What is found so far, with what searches of the model's brought to the calls that wait."""
    there = {*removed, *(attachment.item.id for attachment in found.attachments)}
    attachments = {
        tool.item: Attachment(
            item=state.library.items[tool.item, tool.version],
            provenance=Provenance(
                include="agent", score=tool.score, origin="model", source=entry.query
            ),
        )
        for entry in state.turn.searches
        for tool in entry.found
        if tool.item not in there
    }
    return replace(found, attachments=(*found.attachments, *attachments.values()))
