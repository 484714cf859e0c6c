"""What can be chosen for a question, as it is searched, and what went before the question."""

from collections.abc import Mapping, Sequence

from lamina.journal import State
from lamina.values.agent import Guide
from lamina.values.item import Attachment, ItemId, key_of, kind_of
from lamina.values.message import ToolResult
from lamina.values.selection import Document
from lamina.values.tool import OfferedTool

# How many questions before this one are looked at.
RECENT_TURNS = 2
# Kinds whose key is, or begins with, a path.
_PATHS = ("note", "file", "selection", "pdf", "image", "folder")


def guide_document(guide: Guide) -> Document:
    from lamina.selection.chunks import chunk_item

    return Document(guide.id, chunk_item(guide.name, guide.description, guide.text))


def tool_document(tool: OfferedTool) -> Document:
    """A tool as it is searched: one chunk."""
    from lamina.selection.chunks import chunk_tool

    server, _, name = key_of(tool.id).partition("/")
    definition = tool.definition
    parameters = tuple(definition.parameters.get("properties", {}))
    chunks = chunk_tool(
        name,
        definition.description,
        server=server,
        server_description=tool.about,
        parameters=parameters,
    )
    return Document(tool.id, chunks)


def recent_questions(state: State) -> tuple[str, ...]:
    """The questions before this one, the latest first."""
    cached = state.envelope.cached
    found: list[str] = []
    for at in range(len(cached) - 1, -1, -1):
        if len(found) == RECENT_TURNS:
            break
        if cached[at].role == "user":
            found.append(cached[at].text)
    return tuple(found)


def recent_results(state: State) -> tuple[tuple[str, str], ...]:
    """What tools gave since the last question, with their names."""
    cached = state.envelope.cached
    found: list[tuple[str, str]] = []
    for at in range(len(cached) - 1, -1, -1):
        message = cached[at]
        if message.role == "user":
            break
        found += [
            (block.name, block.text)
            for block in message.blocks
            if isinstance(block, ToolResult) and not block.is_error
        ]
    return tuple(found)


def matching_guides(
    guides: Sequence[Guide], state: State, attached: Sequence[Attachment]
) -> list[tuple[Guide, str]]:
    """Guides whose globs match something attached, with what they match."""
    from lamina.selection.globs import first_match

    paths = [_path_of(a.item.id) for a in attached if kind_of(a.item.id) in _PATHS]
    if not paths:
        return []
    return [
        (guide, path)
        for guide in guides
        if guide.globs and state.members.get(guide.id) != "removed"
        if (path := first_match(guide.globs, paths))
    ]


def _path_of(item: ItemId) -> str:
    key = key_of(item)
    return key.rpartition("#L")[0] if kind_of(item) == "selection" else key


def vanished_guides(state: State, there: Mapping[ItemId, Guide]) -> list[ItemId]:
    """Guides that the last request had from the agent, and that the agent has no more."""
    last = state.last_sent
    if last is None:
        return []
    return [
        item.item
        for item in last.context.items
        if item.level is not None and item.item not in there and item.item not in state.members
    ]
