"""What the engine needs of the world, as Protocols. Adapters implement them; nothing here does.

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
        """Seconds since the epoch."""
        ...


class TokenCounter(Protocol):
    """Counts tokens as one family of models does. `name` keeps counts of different ones apart."""

    @property
    def name(self) -> str:
        """Which tokenizer it is."""
        ...

    @property
    def exact(self) -> bool:
        """Whether it counts as the vendor does, or estimates."""
        ...

    def count(self, text: str) -> int:
        """How many tokens a text has."""
        ...


class Wire(Protocol):
    """One vendor's wire form: pure, no network."""

    def encode(self, request: WireRequest) -> dict[str, Any]:
        """A request as keyword arguments for the vendor's client."""
        ...

    def decode(self, reply: object) -> Reply:
        """A vendor's reply, given as its SDK's object or as the body.

        Raises:
            ReplyError: it cannot be read.
        """
        ...


class TargetBook(Protocol):
    """What is known of providers and models."""

    def find(self, name: str) -> Target:
        """The target of a name.

        Raises:
            UnknownTarget: there is none.
        """
        ...

    def counter(self, target: Target) -> TokenCounter:
        """What counts tokens as a target does."""
        ...

    def wire(self, target: Target) -> Wire:
        """The wire form of a target."""
        ...


@runtime_checkable
class TargetList(Protocol):
    """A book that can say which targets it knows."""

    def names(self) -> Sequence[str]:
        """Their names; of a family of models, with `*` where the name goes on."""
        ...

    def find(self, name: str) -> Target:
        """The target of a name."""
        ...


class SummaryJob(Protocol):
    """What a summary is wanted of. `request` is a whole request in the target's wire form: the
    bytes of the conversation as they were sent, so that the provider's cache serves them, and
    then the instruction."""

    @property
    def target(self) -> Target:
        """Whose wire form the request has."""
        ...

    @property
    def instruction(self) -> str:
        """What the model is asked to write."""
        ...

    @property
    def messages(self) -> Sequence[Message]:
        """The part of the conversation that is summed up."""
        ...

    @property
    def previous(self) -> str:
        """The summary of what went before it; empty if there is none."""
        ...

    @property
    def max_tokens(self) -> int:
        """How long the summary may be."""
        ...

    def request(self) -> dict[str, Any]:
        """The whole request, as keyword arguments for the vendor's client."""
        ...


class Summarizer(Protocol):
    """Sums up a part of a conversation in few words, as a model would."""

    async def summarize(self, job: SummaryJob) -> object:
        """The summary as text, or the provider's reply that holds it."""
        ...


class WorkspaceSource(Protocol):
    """Reads what a person attaches, and only from inside its own root."""

    @property
    def name(self) -> str:
        """What people are shown."""
        ...

    async def read(self, reference: str, shape: Shape) -> LoadedItem | LeftOut:
        """The item that `reference` names, or why it cannot be had."""
        ...


# Bytes of a picture on the web, up to a size; or why they cannot be had.
FetchPicture = Callable[[str, int], Awaitable[FetchedResource | UnfetchedResource]]


@runtime_checkable
class BundleSource(Protocol):
    """A workspace in which one reference may bring several items: a folder its notes, a note what
    it embeds."""

    @property
    def id(self) -> str:
        """Tells this workspace from every other one."""
        ...

    async def gather(
        self,
        reference: str,
        shape: Shape,
        *,
        embed_depth: int = 1,
        fetch_picture: FetchPicture | None = None,
    ) -> GatheredItems:
        """The item that `reference` names, and what comes along with it."""
        ...

    async def find_moved(self, item: Item) -> str | None:
        """Where a note is now that is not where `item` was read: the one path that has its content,
        or else its name. None if there is none, or more than one."""
        ...


@runtime_checkable
class NoteSource(Protocol):
    """The notes of a workspace, to be searched."""

    async def catalogue(self, progress: Progress | None = None) -> Catalogue:
        """All notes as they are now; only what changed is read anew."""
        ...

    async def texts(self, wanted: Sequence[tuple[str, Passage]]) -> Sequence[str | None]:
        """The text of passages as they are searched, which is what their digest is of, each with
        the path of its note. None where the note is not as it was."""
        ...

    async def excerpts(self, wanted: Sequence[tuple[str, Passage]]) -> Sequence[Excerpt | None]:
        """The passages as their notes hold them, with the secrets that they have a piece of. None
        where the note is not as it was."""
        ...

    def take_warnings(self) -> Sequence[str]:
        """What went wrong with keeping what is known of them; each is given once."""
        ...


@runtime_checkable
class SearchedNoteSource(NoteSource, KnownTerms, Protocol):
    """A source of notes that takes their terms while it reads them for a search, and saves what it
    knows once that is answered."""

    async def catalogue_to_search(self, progress: Progress | None = None) -> Catalogue:
        """As `catalogue`; the terms of what was read can be taken."""
        ...

    def save(self) -> None:
        """Saves what is known of the notes, in nobody's way."""
        ...


class WebSource(Protocol):
    """Fetches what rules allow, and nothing else."""

    async def page(self, url: str, rules: WebRules) -> LoadedItem | LeftOut:
        """The page as an item: its main text, under its one address."""
        ...

    async def picture(
        self, url: str, rules: WebRules, limit: int
    ) -> FetchedResource | UnfetchedResource:
        """The bytes of a picture, up to `limit`."""
        ...


class WebSearch(Protocol):
    """Searches the web, somewhere that a person named. What it gives is screened: addresses of
    public pages, short texts."""

    @property
    def name(self) -> str:
        """Where queries go, for people."""
        ...

    async def search(self, query: str, limit: int) -> FoundPages | UnfetchedResource:
        """Up to about `limit` pages for a query, or why there are none."""
        ...


class MemorySource(Protocol):
    """What a person wants remembered in every session."""

    @property
    def name(self) -> str:
        """What it is called in the reason of a change."""
        ...

    async def read(self) -> str:
        """Its text as it is now; empty if there is none.

        Raises:
            UsageError: it is there and cannot be read.
        """
        ...


class Provider(Protocol):
    """Sends what a wire encoded to a model and gives the answer as it comes."""

    def stream(self, body: Mapping[str, Any]) -> AsyncIterator[Piece]:
        """The pieces of the answer; the last one is the whole `Reply`. An answer that breaks off
        ends without one. Closing the iterator stops the model.

        Raises:
            RequestTooLong: the model says that the request does not fit its window.
            ProviderError: there is no answer, and why.
        """
        ...


@runtime_checkable
class SessionKeeper(Protocol):
    """A provider, or several, that keep something of a session while it is open."""

    async def release_session(self, session: str) -> None:
        """The session is closed."""
        ...


class CacheCharge(Protocol):
    """What one explicit cache costs for a time: reserved before, settled behind."""

    async def confirm(self, tokens: int) -> None:
        """It was created, or renewed, with so many tokens."""
        ...

    async def fail(self, error: BaseException) -> None:
        """It was not, or nobody knows."""
        ...

    async def end(self, seconds: float) -> None:
        """It was stored for so many seconds."""
        ...


class CachePayer(Protocol):
    """Pays for the explicit caches of a session."""

    async def reserve_cache(
        self, tokens: int, seconds: float, *, creates: bool
    ) -> CacheCharge | None:
        """Reserves what it costs to store so many tokens for so long, and, if it `creates` the
        cache, to send them. None if a limit forbids it."""
        ...


@runtime_checkable
class CacheMaker(Protocol):
    """A provider that creates caches beside the requests, which cost something."""

    def charge_caches(self, session: str, payer: CachePayer) -> None:
        """Who pays for the caches of a session from now on."""
        ...


class Providers(Protocol):
    """Finds who answers for a target; a model of one's own is loaded when it is first wanted."""

    async def provider(self, target: Target) -> Provider:
        """Who answers for a target."""
        ...


class ToolHost(Protocol):
    """Runs tools. What goes wrong with one is its result: only a cancellation gets out of it. One
    that has to be opened is an async context manager, too."""

    async def toolset(self) -> Toolset:
        """What can be offered now; a server that does not answer is withheld, not waited for."""
        ...

    async def call(self, name: str, arguments: Mapping[str, Any]) -> ToolOutput:
        """Runs the tool that is offered as `name`."""
        ...


class Approver(Protocol):
    """Asks a person whether a call may run."""

    async def decide(self, call: ToolCall, tool: OfferedTool) -> Decision:
        """The person's decision about a call of a tool."""
        ...


class GuideSource(Protocol):
    """The rules and references of an agent."""

    async def guides(self) -> Guides:
        """As they are now: files may have changed since they were last asked for."""
        ...
