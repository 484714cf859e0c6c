"""What can be chosen for a question, as it is searched, and what went before the question."""

from collections.abc import Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from itertools import islice, takewhile

from lamina.assembly.engine_tools import FIND_TOOLS, intended_call
from lamina.journal import State
from lamina.ports import Corpus
from lamina.values.agent import Guide
from lamina.values.item import Attachment, ItemId, file_of, key_of, kind_of
from lamina.values.item_kind import TRAITS
from lamina.values.message import Message, ToolCall, ToolResult
from lamina.values.selection import Document
from lamina.values.tool import OfferedTool

# How many earlier questions count.
RECENT_TURNS = 2
_GLOBBED = tuple(kind for kind, traits in TRAITS.items() if traits.meets_globs)


def guide_document(guide: Guide) -> Document:
    from lamina.selection.chunks import chunk_item

    return Document(guide.id, chunk_item(guide.name, guide.description, guide.text))


def tool_document(tool: OfferedTool) -> Document:
    """A tool as it is searched: one chunk."""
    from lamina.selection.chunks import chunk_tool

    server, _, name = key_of(tool.id).partition("/")
    chunks = chunk_tool(
        name,
        tool.definition.description,
        server=server,
        server_description=tool.about,
        parameters=tuple(tool.definition.parameters.get("properties", {})),
    )
    return Document(tool.id, chunks)


def corpus_warnings(corpus: Corpus) -> list[str]:
    """What went wrong with an index when it was loaded and searched."""
    warnings = [f"not embedded: {failure}" for failure in corpus.failed]
    return warnings + [f"index: {warning}" for warning in corpus.warnings]


def recent_questions(state: State) -> tuple[str, ...]:
    """The questions before this one, the latest first."""
    questions = (message.text for message in _latest_first(state) if message.role == "user")
    return tuple(islice(questions, RECENT_TURNS))


def recent_results(state: State) -> tuple[tuple[str, str], ...]:
    """What tools gave since the last question, with their names; searches for tools gave names."""
    messages = takewhile(lambda message: message.role != "user", _latest_first(state))
    blocks = (block for message in messages for block in message.blocks)
    return tuple(
        (block.name, block.text)
        for block in blocks
        if isinstance(block, ToolResult) and not block.is_error and block.name != FIND_TOOLS.name
    )


def expanding_results(
    names: str, message: Message, calls: Sequence[ToolCall]
) -> tuple[tuple[str, str], ...]:
    """Of the results in a message, those of the tools that `names` lists as the setting
    `expanding_tools` does, each with the name of the tool that was meant."""
    results = [block for block in message.blocks if isinstance(block, ToolResult)]
    patterns = [name for name in (part.strip() for part in names.split(",")) if name]
    meant = {call.id: intended_call(call).name for call in calls}
    named_results = [(meant.get(r.call_id, r.name), r.text) for r in results if not r.is_error]
    return tuple(
        (name, text)
        for name, text in named_results
        if name != FIND_TOOLS.name and any(fnmatchcase(name, pattern) for pattern in patterns)
    )


def _latest_first(state: State) -> Iterator[Message]:
    cached = state.envelope.cached
    return (cached[at] for at in range(len(cached) - 1, -1, -1))


def matching_guides(
    guides: Sequence[Guide], state: State, attached: Sequence[Attachment]
) -> list[tuple[Guide, str]]:
    """Guides whose globs match something attached, with what they match."""
    from lamina.selection.globs import first_match

    items = [a.item.id for a in attached if kind_of(a.item.id) in _GLOBBED]
    paths = [file_of(item) or key_of(item) for item in items]
    if not paths:
        return []
    return [
        (guide, path)
        for guide in guides
        if guide.globs and state.library.members.get(guide.id) != "removed"
        if (path := first_match(guide.globs, paths))
    ]


def vanished_guides(state: State, there: Mapping[ItemId, Guide]) -> list[ItemId]:
    """Guides that the last request had from the agent, and that the agent no longer has."""
    return [
        item.item
        for item in (state.requests.sent.context.items if state.requests.sent else ())
        if item.level is not None
        and item.item not in there
        and item.item not in state.library.members
    ]
