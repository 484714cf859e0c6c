"""Lists the candidates for a question in search format, and the conversation before it."""

from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from itertools import islice, takewhile
from typing import TYPE_CHECKING

from msgspec import Struct

from lamina.core.ports import Corpus
from lamina.core.values.agent import Guide
from lamina.core.values.item import TRAITS, Attachment, ItemId, file_of, key_of, kind_of
from lamina.core.values.message import Message, ToolCall, ToolResult
from lamina.core.values.selection import Document, SearchSettings
from lamina.core.values.settings import Settings
from lamina.core.values.tool import OfferedTool

if TYPE_CHECKING:
    from lamina.core.journal import State

# How many earlier questions count.
RECENT_TURNS = 2
_GLOBBED = tuple(kind for kind, traits in TRAITS.items() if traits.meets_globs)


class Candidate(Struct, frozen=True, kw_only=True):
    """A candidate, as shown to a person."""

    document: Document
    name: str
    kind: str
    server: str = ""
    include: str = ""


class Candidates(Struct, frozen=True, kw_only=True):
    """The candidates to choose from; the settings and `relations` determine how the agent wants
    them chosen. `guides` are the rules and references among the candidates, `added` what a person
    added to the session, `recent` the questions before this one, the latest first.
    """

    candidates: tuple[Candidate, ...]
    guides: tuple[Guide, ...] = ()
    guide_search: SearchSettings = SearchSettings()
    tool_search: SearchSettings = SearchSettings()
    relations: dict[str, tuple[str, ...]] = {}
    problems: tuple[str, ...] = ()
    added: frozenset[ItemId] = frozenset()
    recent: tuple[str, ...] = ()
    # The tools of a pool that is offered as a whole.
    whole_pool: frozenset[ItemId] = frozenset()

    @property
    def documents(self) -> tuple[Document, ...]:
        return tuple(candidate.document for candidate in self.candidates)

    def searched(
        self, there: Container[ItemId] = ()
    ) -> tuple[tuple[tuple[Candidate, ...], SearchSettings], ...]:
        """Return the items that search may choose in addition to those that are `there`: from the
        rules and references, and from the tools, each with how it is chosen. They are searched
        separately, as in a session.
        """
        free = [
            candidate
            for candidate in self.candidates
            if candidate.include in ("", "agent") and candidate.document.id not in there
        ]
        guides = tuple(candidate for candidate in free if candidate.kind != "tool")
        tools = tuple(candidate for candidate in free if candidate.kind == "tool")
        pools = ((guides, self.guide_search), (tools, self.tool_search))
        return tuple((pool, settings) for pool, settings in pools if pool)

    def by_id(self) -> dict[ItemId, Candidate]:
        return {candidate.document.id: candidate for candidate in self.candidates}


def guide_document(guide: Guide) -> Document:
    from lamina.core.selection.chunks import chunk_item

    return Document(guide.id, chunk_item(guide.name, guide.description, guide.text))


def tool_document(tool: OfferedTool) -> Document:
    """Return a tool in search format: one chunk."""
    from lamina.core.selection.chunks import chunk_tool

    server, _, name = key_of(tool.id).partition("/")
    chunks = chunk_tool(
        name,
        tool.definition.description,
        server=server,
        server_description=tool.about,
        parameters=tuple(tool.definition.parameters.get("properties", {})),
    )
    return Document(tool.id, chunks)


def offered_candidate(tool: OfferedTool, settings: Settings) -> Candidate:
    """Return a tool as a candidate; if all tools are offered, it is included anyway."""
    server, _, name = key_of(tool.id).partition("/")
    is_always = tool.include == "agent" and settings.tool_policy == "all"
    return Candidate(
        document=tool_document(tool),
        name=name,
        kind="tool",
        server=server,
        include="always" if is_always else tool.include,
    )


def guide_candidate(guide: Guide) -> Candidate:
    """Return a rule or a reference as a candidate."""
    return Candidate(
        document=guide_document(guide), name=guide.name, kind=guide.kind, include=guide.include
    )


def corpus_warnings(corpus: Corpus) -> list[str]:
    """Return warnings about errors in loading and searching an index."""
    warnings = [f"not embedded: {failure}" for failure in corpus.failed]
    return warnings + index_warnings(corpus.warnings)


def index_warnings(problems: Iterable[str]) -> list[str]:
    """Return warnings about errors in storing an index."""
    return [f"index: {problem}" for problem in problems]


def recent_questions(state: "State") -> tuple[str, ...]:
    """Return the questions before this one, the latest first."""
    questions = (message.text for message in _latest_first(state) if message.role == "user")
    return tuple(islice(questions, RECENT_TURNS))


def recent_results(state: "State") -> tuple[tuple[str, str], ...]:
    """Return the tool results since the last question, with the tools' names; results of tool
    searches are names.
    """
    from lamina.core.assembly.engine_tools import FIND_TOOLS

    messages = takewhile(lambda message: message.role != "user", _latest_first(state))
    blocks = (block for message in messages for block in message.blocks)
    return tuple(
        (block.name, block.text)
        for block in blocks
        if isinstance(block, ToolResult) and not block.is_error and block.name != FIND_TOOLS.name
    )


def expanding_results(
    names: str,
    message: Message,
    calls: Sequence[ToolCall],
    tools: Sequence[OfferedTool] = (),
) -> tuple[tuple[str, str], ...]:
    """Return those results in a message that come from the tools that `names` lists, in the format
    of the setting `expanding_tools`; each with the name of the tool that was meant. A tool is
    listed by its own name, by its name with its server, or by the name that the model uses.
    """
    from lamina.core.assembly.engine_tools import FIND_TOOLS, intended_call

    results = [block for block in message.blocks if isinstance(block, ToolResult)]
    patterns = [name for name in (part.strip() for part in names.split(",")) if name]
    offered = {tool.definition.name: tool for tool in tools}
    meant = {call.id: intended_call(call, offered).name for call in calls}
    named_results = [(meant.get(r.call_id, r.name), r.text) for r in results if not r.is_error]
    return tuple(
        (name, text)
        for name, text in named_results
        if name != FIND_TOOLS.name
        and any(
            fnmatchcase(known, pattern)
            for known in _names_of(name, offered.get(name))
            for pattern in patterns
        )
    )


def _names_of(name: str, tool: OfferedTool | None) -> tuple[str, ...]:
    """Return the name that people use for a tool that the model calls `name`."""
    if tool is None:
        return (name,)
    key = key_of(tool.id)
    return (name, key.partition("/")[2], key.lstrip("/"))


def _latest_first(state: "State") -> Iterator[Message]:
    cached = state.envelope.cached
    return (cached[at] for at in range(len(cached) - 1, -1, -1))


def matching_guides(
    guides: Sequence[Guide], state: "State", attached: Sequence[Attachment]
) -> list[tuple[Guide, str]]:
    """Return the guides whose globs match an attachment, with what they match."""
    from lamina.core.selection.globs import first_match

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


def vanished_guides(state: "State", there: Mapping[ItemId, Guide]) -> list[ItemId]:
    """Return the guides that the last request had from the agent, and that the agent no longer
    has.
    """
    return [
        item.item
        for item in (state.requests.sent.context.items if state.requests.sent else ())
        if item.level is not None
        and item.item not in there
        and item.item not in state.library.members
    ]
