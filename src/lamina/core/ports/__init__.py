"""What the engine needs from the outside, as Protocols. Adapters implement them; nothing here does.

Private: see `lamina` for what is public.
"""

from collections.abc import (
    AsyncIterator,
    Awaitable,
    Callable,
    Mapping,
    Sequence,
)
from typing import Any, Protocol, runtime_checkable

from lamina.core.ports.search_index import Corpus as Corpus
from lamina.core.ports.search_index import Embedder as Embedder
from lamina.core.ports.search_index import FluentEmbedder as FluentEmbedder
from lamina.core.ports.search_index import GradualCorpus as GradualCorpus
from lamina.core.ports.search_index import GradualIndex as GradualIndex
from lamina.core.ports.search_index import Index as Index
from lamina.core.ports.search_index import KnownTerms as KnownTerms
from lamina.core.ports.search_index import Progress as Progress
from lamina.core.ports.search_index import ReadTexts as ReadTexts
from lamina.core.ports.search_index import StoredIndex as StoredIndex
from lamina.core.ports.search_index import WordEmbedder as WordEmbedder
from lamina.core.ports.store import CheckpointedJournal as CheckpointedJournal
from lamina.core.ports.store import JournalStore as JournalStore
from lamina.core.ports.store import OpenJournal as OpenJournal
from lamina.core.ports.store import SentPrefixes as SentPrefixes
from lamina.core.ports.store import SpendAccount as SpendAccount
from lamina.core.ports.store import SpendLedger as SpendLedger
from lamina.core.ports.store import ViewableStore as ViewableStore
from lamina.core.values.agent import Guides
from lamina.core.values.item import Excerpt, Item, LoadedItem, Shape
from lamina.core.values.message import Message, ToolCall
from lamina.core.values.note import Catalogue, Passage
from lamina.core.values.request import GatheredItems, LeftOut
from lamina.core.values.settings import Target
from lamina.core.values.tool import Decision, OfferedTool, ToolOutput, Toolset
from lamina.core.values.web_access import FetchedResource, FoundPages, UnfetchedResource, WebRules
from lamina.core.values.wire import Piece, Reply, WireRequest


class Clock(Protocol):
    """Tells the time."""

    def now(self) -> float:
        """Return seconds since the epoch."""
        ...


class TokenCounter(Protocol):
    """Counts tokens as one family of models does. `name` keeps the counts of different ones
    apart."""

    @property
    def name(self) -> str:
        """The name of the tokenizer."""
        ...

    @property
    def exact(self) -> bool:
        """Whether it counts as the vendor does; otherwise it estimates."""
        ...

    def count(self, text: str) -> int:
        """Return the number of tokens in a text."""
        ...


class Wire(Protocol):
    """One vendor's wire form: pure, no network."""

    def encode(self, request: WireRequest) -> dict[str, Any]:
        """Return a request as keyword arguments for the vendor's client."""
        ...

    def decode(self, reply: object) -> Reply:
        """Return a vendor's reply, given as its SDK's object or as the body.

        Raises:
            ReplyError: it cannot be read.
        """
        ...


class TargetBook(Protocol):
    """The known facts about providers and models."""

    def find(self, name: str) -> Target:
        """Return the target of a name.

        Raises:
            UnknownTarget: there is none.
        """
        ...

    def counter(self, target: Target) -> TokenCounter:
        """Return the token counter of a target."""
        ...

    def wire(self, target: Target) -> Wire:
        """Return the wire form of a target."""
        ...


@runtime_checkable
class TargetList(Protocol):
    """A book that can list its targets."""

    def names(self) -> Sequence[str]:
        """Return their names; for a family of models, with `*` where the name continues."""
        ...

    def find(self, name: str) -> Target:
        """Return the target of a name."""
        ...


class SummaryJob(Protocol):
    """The task of a summary. `request` is a whole request in the target's wire form: the bytes of
    the conversation as they were sent, so that the provider's cache serves them, and then the
    instruction."""

    @property
    def target(self) -> Target:
        """The target in whose wire form the request is."""
        ...

    @property
    def instruction(self) -> str:
        """What the model is asked to write."""
        ...

    @property
    def messages(self) -> Sequence[Message]:
        """The part of the conversation to summarise."""
        ...

    @property
    def previous(self) -> str:
        """The summary of what came before it; empty if there is none."""
        ...

    @property
    def max_tokens(self) -> int:
        """The maximum length of the summary."""
        ...

    def request(self) -> dict[str, Any]:
        """The whole request, as keyword arguments for the vendor's client."""
        ...


class Summarizer(Protocol):
    """Summarises a part of a conversation, as a model would."""

    async def summarize(self, job: SummaryJob) -> object:
        """Return the summary as text, or the provider's reply that contains it."""
        ...


class WorkspaceSource(Protocol):
    """Reads what a person attaches, and only from inside its own root."""

    @property
    def name(self) -> str:
        """The name that people see."""
        ...

    async def read(self, reference: str, shape: Shape) -> LoadedItem | LeftOut:
        """Return the item that `reference` names, or why it is unavailable."""
        ...


# The bytes of a picture on the web, up to a size; or why they are unavailable.
FetchPicture = Callable[[str, int], Awaitable[FetchedResource | UnfetchedResource]]


@runtime_checkable
class BundleSource(Protocol):
    """A workspace in which one reference may bring several items: a folder its notes, a note its
    embeds."""

    @property
    def id(self) -> str:
        """Distinguishes this workspace from every other one."""
        ...

    async def gather(
        self,
        reference: str,
        shape: Shape,
        *,
        embed_depth: int = 1,
        fetch_picture: FetchPicture | None = None,
    ) -> GatheredItems:
        """Return the item that `reference` names, and what comes along with it."""
        ...

    async def find_moved(self, item: Item) -> str | None:
        """Return where a note is now that is not where `item` was read: the one path that has its
        content, or else its name. None if there is none, or more than one."""
        ...


@runtime_checkable
class NoteSource(Protocol):
    """The notes of a workspace, to be searched."""

    async def catalogue(self, progress: Progress | None = None) -> Catalogue:
        """Return all current notes; only changed ones are read again."""
        ...

    async def texts(self, wanted: Sequence[tuple[str, Passage]]) -> Sequence[str | None]:
        """Return the text of passages as they are searched, to which their digest belongs, each
        with the path of its note. None where the note has changed."""
        ...

    async def excerpts(self, wanted: Sequence[tuple[str, Passage]]) -> Sequence[Excerpt | None]:
        """Return the passages as written in their notes, with the secrets of which they contain a
        piece. None where the note has changed."""
        ...

    def take_warnings(self) -> Sequence[str]:
        """Return problems with storing what is known about notes; each is returned once."""
        ...


@runtime_checkable
class SearchedNoteSource(NoteSource, KnownTerms, Protocol):
    """A source of notes that collects their terms while reading them for a search, and saves what
    it knows once the search is answered."""

    async def catalogue_to_search(self, progress: Progress | None = None) -> Catalogue:
        """Like `catalogue`; the terms of what was read can be taken."""
        ...

    def save(self) -> None:
        """Save what is known about the notes, in the background."""
        ...


class WebSource(Protocol):
    """Fetches what rules allow, and nothing else."""

    async def page(self, url: str, rules: WebRules) -> LoadedItem | LeftOut:
        """Return the page as an item: its main text, under its one address."""
        ...

    async def picture(
        self, url: str, rules: WebRules, limit: int
    ) -> FetchedResource | UnfetchedResource:
        """Return the bytes of a picture, up to `limit`."""
        ...


class WebSearch(Protocol):
    """Searches the web at a service that a person named. Its results are screened: addresses of
    public pages, short texts."""

    @property
    def name(self) -> str:
        """The name of the service queries go to, for people."""
        ...

    async def search(self, query: str, limit: int) -> FoundPages | UnfetchedResource:
        """Return up to about `limit` pages for a query, or why there are none."""
        ...


class MemorySource(Protocol):
    """What a person wants remembered in every session."""

    @property
    def name(self) -> str:
        """Its name in the reason of a change."""
        ...

    async def read(self) -> str:
        """Return its current text; empty if there is none.

        Raises:
            UsageError: it exists and cannot be read.
        """
        ...


class Provider(Protocol):
    """Sends what a wire encoded to a model and streams the answer."""

    def stream(self, body: Mapping[str, Any]) -> AsyncIterator[Piece]:
        """Yield the pieces of the answer; the last one is the whole `Reply`. An answer that breaks
        off ends without one. Closing the iterator stops the model.

        Raises:
            RequestTooLong: the model reports that the request does not fit its window.
            ProviderError: there is no answer, and why.
        """
        ...


@runtime_checkable
class SessionKeeper(Protocol):
    """A provider, or several, that keep data for a session while it is open."""

    async def release_session(self, session: str) -> None:
        """Called when the session is closed."""
        ...


class CacheCharge(Protocol):
    """The cost of one explicit cache for a time: reserved before, settled after."""

    async def confirm(self, tokens: int) -> None:
        """It was created, or renewed, with this many tokens."""
        ...

    async def fail(self, error: BaseException) -> None:
        """It was not, or that is unknown."""
        ...

    async def end(self, seconds: float) -> None:
        """It was stored for this many seconds."""
        ...


class CachePayer(Protocol):
    """Pays for the explicit caches of a session."""

    async def reserve_cache(
        self, tokens: int, seconds: float, *, creates: bool
    ) -> CacheCharge | None:
        """Reserve the cost of storing this many tokens for this long, and, if it `creates` the
        cache, of sending them. None if a limit forbids it."""
        ...


@runtime_checkable
class CacheMaker(Protocol):
    """A provider that creates caches outside the requests, at a cost."""

    def charge_caches(self, session: str, payer: CachePayer) -> None:
        """Set who pays for the caches of a session from now on."""
        ...


class Providers(Protocol):
    """Finds the provider for a target; a local model is loaded on first use."""

    async def provider(self, target: Target) -> Provider:
        """Return the provider for a target."""
        ...


class ToolHost(Protocol):
    """Runs tools. A tool's failure is its result: only a cancellation escapes. A host that has to
    be opened is an async context manager, too."""

    async def toolset(self) -> Toolset:
        """Return what can be offered now; a server that does not answer is withheld, not waited
        for."""
        ...

    async def call(self, name: str, arguments: Mapping[str, Any]) -> ToolOutput:
        """Run the tool that is offered as `name`."""
        ...


class Approver(Protocol):
    """Asks a person whether a call may run."""

    async def decide(self, call: ToolCall, tool: OfferedTool) -> Decision:
        """Return the person's decision about a tool call."""
        ...


class GuideSource(Protocol):
    """The rules and references of an agent."""

    async def guides(self) -> Guides:
        """Return the current ones: files may have changed since the last call."""
        ...
