"""Lets the model search for tools in the middle of a turn.

Laws: a search can find only tools that the session may use: none that were removed or are withheld.
Tools that the model can already call are only named, so that repeating the same query finds others.
The results of one search are described briefly (after the first few, only by name and arguments),
are close to the best, and are limited to the size of as many usual tools, because every later
request pays for them, too. A call with wrong arguments gets the full description. From the next
request on, found tools are placed behind the results: nothing that was sent moves. If the vendor
loads tools late, the result loads their definitions instead of describing them; a name that was
loaded once, for a tool that changed since then, is described.
"""

from collections.abc import Iterable, Mapping, Sequence
from statistics import median

from msgspec import Struct
from msgspec.structs import replace

from lamina.core.assembly.engine_tools import FOUND_TOKENS, MAX_FOUND
from lamina.core.assembly.inclusion import sort_tools
from lamina.core.assembly.tool_offer import define_found, describe_found, is_described
from lamina.core.journal import State
from lamina.core.layers import Assembler
from lamina.core.text.excerpt import brief
from lamina.core.values.entry import FoundTool, ResultEntry
from lamina.core.values.item import Attachment, Item, ItemId, Provenance
from lamina.core.values.message import LoadedTool, LoadedTools, ToolDefinition
from lamina.core.values.request import Attachments
from lamina.core.values.selection import SearchSettings, SelectedItem
from lamina.core.values.tool import OfferedTool
from lamina.engine.sources.candidates import tool_document
from lamina.engine.sources.selector import Selector

# How many of the best are examined, and how many of them get more than the minimum: the effect of a
# new tool, and a note that a known one is available.
COMPARED, FIRST = 50, 3
# Tools that score less than this share of the best score are dropped.
NEAR = 0.75
# How much of a query is recorded with its results: the call itself contains all of it.
NOTED = 200
NOTHING_FOUND = "No other tool matches. Describe the task differently."
NO_ROOM = "Some tools match, but there is no room left in this conversation to describe them."


class ToolFinds(Struct, frozen=True, kw_only=True):
    """The outcome of a search by the model: its result as text, and the tools to describe or to
    load.
    """

    text: str
    items: tuple[Item, ...] = ()
    loaded: tuple[LoadedTool, ...] = ()
    found: tuple[FoundTool, ...] = ()
    is_error: bool = False


async def rank_tools(
    selector: Selector, tools: Sequence[OfferedTool], query: str, floor: float
) -> tuple[SelectedItem, ...]:
    """Return the tools that are relevant to a query, best first."""
    from lamina.core.selection.question import split_question
    from lamina.core.selection.scores import rank_documents

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
    *,
    loads_late: bool = False,
) -> ToolFinds:
    """Return the results of a query by the model among `tools`; at most `room` tokens. With
    `loads_late`, the vendor loads the tools that are found.
    """
    if selector.index is None:
        # The reason, and how to fix it, is for the person: every request reports it.
        return ToolFinds(text="Tool search is not available here.", is_error=True)
    inclusion = sort_tools(state, tools)
    usable = {tool.id: tool for tool in (*inclusion.agent, *inclusion.present)}
    try:
        floor = state.settings.tool_search.floor
        ranking = await rank_tools(selector, list(usable.values()), query, floor)
    # If a search fails, the model gets the error, and continues without its results.
    except Exception as error:  # noqa: BLE001
        return ToolFinds(text=f"The search failed: {type(error).__name__}: {error}", is_error=True)
    callable_names = {tool.name for tool in state.envelope.tools}
    loaded = {tool.definition.name: tool.item for tool in loaded_now(state)}
    earlier = {item.id for _, _, item in found_items(state)} | {*loaded.values()}

    def is_known(tool: OfferedTool) -> bool:
        name = tool.definition.name
        return name in callable_names or tool.id in earlier or is_described(tool, state)

    first = [usable[hit.item] for hit in ranking[:FIRST]]
    known = [tool.definition.name for tool in first if is_known(tool)]
    new = [hit for hit in ranking if not is_known(usable[hit.item])][:COMPARED]
    items = {
        hit.item: describe_found(usable[hit.item], is_first=place < FIRST)
        for place, hit in enumerate(new)
    }
    # Two tools with the same name cannot be distinguished: the first one keeps it.
    late = {
        hit.item: define_found(usable[hit.item], is_first=place < FIRST)
        for place, hit in enumerate(new)
        if loads_late and usable[hit.item].definition.name not in {**state.loaded, **loaded}
    }
    words = note_query(query)
    sizes = {item: assembler.item_tokens(items[item]) for item in items if item not in late}
    sizes |= {item: assembler.definition_tokens(tool) for item, tool in late.items()}
    room = min(room, FOUND_TOKENS) - assembler.count_text(_say(MAX_FOUND, known))
    hits = _take(new, sizes, room)
    if new and not hits:
        return ToolFinds(text=_add_known([NO_ROOM], known))
    return ToolFinds(
        text=_say_loaded(hits, late, known) if late else _say(len(hits), known),
        items=tuple(items[hit.item] for hit in hits if hit.item not in late),
        loaded=tuple(
            LoadedTool(item=hit.item, definition=late[hit.item], score=hit.score, source=words)
            for hit in hits
            if hit.item in late
        ),
        found=tuple(
            FoundTool(item=hit.item, version=items[hit.item].version, score=hit.score)
            for hit in hits
        ),
    )


def note_query(query: str) -> str:
    """Return a query as shown to people."""
    return brief(query, NOTED)


def _take(
    ranking: Sequence[SelectedItem], sizes: Mapping[ItemId, int], room: int
) -> list[SelectedItem]:
    """Return the results of a ranking. The best one is included if there is room for it at all."""
    spare = MAX_FOUND * median(sizes.values()) if sizes else 0.0
    least = NEAR * max((hit.score or 0.0 for hit in ranking[:MAX_FOUND]), default=0.0)
    hits: list[SelectedItem] = []
    for hit in ranking:
        size = sizes[hit.item]
        if size > room or (hit.score is not None and hit.score < least):
            continue
        if len(hits) < MAX_FOUND and (size <= spare or not hits):
            room, spare = room - size, spare - size
            hits.append(hit)
    return hits


def _say_loaded(
    hits: Sequence[SelectedItem], late: Mapping[ItemId, ToolDefinition], known: Sequence[str]
) -> str:
    names = [late[hit.item].name for hit in hits if hit.item in late]
    if not names:
        return _say(len(hits), known)
    described = len(hits) - len(names)
    lines = [f"Found {len(hits)}: {', '.join(names)}"]
    if described:
        lines.append(f"and {described} described below. Call those through use_tool.")
    return _add_known(lines, known)


def _say(count: int, known: Sequence[str]) -> str:
    lines = [NOTHING_FOUND]
    if count:
        lines = [f"Found {count}, described below. Call them through use_tool."]
    return _add_known(lines, known)


def _add_known(lines: list[str], known: Sequence[str]) -> str:
    if known:
        lines.append(f"Already available: {', '.join(known)}")
    return "\n".join(lines)


def found_items(state: State) -> list[tuple[ResultEntry, FoundTool, Item]]:
    """Return the items that searches added for the waiting calls; a damaged journal may have lost a
    text.
    """
    kept = state.library.items
    return [
        (entry, tool, kept[tool.item, tool.version])
        for entry in state.turn.searches
        for tool in entry.found
        if (tool.item, tool.version) in kept and not _loads(entry, tool.item)
    ]


def _loads(entry: ResultEntry, item: ItemId) -> bool:
    return entry.loads is not None and any(tool.item == item for tool in entry.loads.tools)


def loaded_now(state: State) -> list[LoadedTool]:
    """Return the tools that searches loaded for the waiting calls."""
    return [tool for entry in state.turn.searches if entry.loads for tool in entry.loads.tools]


def find_loads(state: State, removed: Iterable[ItemId] = ()) -> tuple[LoadedTools, ...]:
    """Return the tools that the results of the waiting calls load, without tools removed since
    then.
    """
    gone = {*removed}
    loads = [entry.loads for entry in state.turn.searches if entry.loads is not None]
    rest = [
        replace(block, tools=tuple(tool for tool in block.tools if tool.item not in gone))
        for block in loads
    ]
    return tuple(block for block in rest if block.tools)


def attach_finds(state: State, removed: Iterable[ItemId], found: Attachments) -> Attachments:
    """Return the tools found so far, including those that the model's searches added for the
    waiting calls.
    """
    there = {*removed, *(attachment.item.id for attachment in found.attachments)}
    attachments = {
        tool.item: Attachment(
            item=item,
            provenance=Provenance(
                include="agent", score=tool.score, origin="model", source=entry.query
            ),
        )
        for entry, tool, item in found_items(state)
        if tool.item not in there
    }
    return replace(found, attachments=(*found.attachments, *attachments.values()))
