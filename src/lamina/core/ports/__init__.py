"""Protocols for everything the engine needs from the outside. Adapters implement them; nothing here
does.

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
    """A source of the current time."""

    def now(self) -> float:
        """Return seconds since the epoch."""
        ...


class TokenCounter(Protocol):
    """A token counter for one family of models. `name` separates the counts of different ones."""

    @property
    def name(self) -> str:
        """The name of the tokenizer."""
        ...

    @property
    def exact(self) -> bool:
        """Whether it counts exactly as the vendor does; otherwise it estimates."""
        ...

    def count(self, text: str) -> int:
        """Return the number of tokens in a string."""
        ...


class Wire(Protocol):
    """The wire format of one vendor: pure, no network."""

    def encode(self, request: WireRequest) -> dict[str, Any]:
        """Return a request as keyword arguments for the vendor's client."""
        ...

    def decode(self, reply: object) -> Reply:
        """Return a vendor's reply, given as its SDK's object or as the response body.

        Raises:
            ReplyError: it cannot be read.
        """
        ...


class TargetBook(Protocol):
    """The known facts about providers and models."""

    def find(self, name: str) -> Target:
        """Return the target with a name.

        Raises:
            UnknownTarget: there is none.
        """
        ...

    def counter(self, target: Target) -> TokenCounter:
        """Return the token counter of a target."""
        ...

    def wire(self, target: Target) -> Wire:
        """Return the wire format of a target."""
        ...


@runtime_checkable
class TargetList(Protocol):
    """A book that can list its targets."""

    def names(self) -> Sequence[str]:
        """Return the names of its targets; for a family of models, with `*` where the name
        continues."""
        ...

    def find(self, name: str) -> Target:
        """Return the target with a name."""
        ...


class SummaryJob(Protocol):
    """A summary to be written. `request` is a whole request in the target's wire format: the bytes
    of the conversation as they were sent, so that the provider's cache serves them, followed by the
    instruction."""

    @property
    def target(self) -> Target:
        """The target whose wire format the request has."""
        ...

    @property
    def instruction(self) -> str:
        """The instruction for the model."""
        ...

    @property
    def messages(self) -> Sequence[Message]:
        """The part of the conversation to summarize."""
        ...

    @property
    def previous(self) -> str:
        """The summary of the messages before these; empty if there is none."""
        ...

    @property
    def max_tokens(self) -> int:
        """The maximum length of the summary."""
        ...

    def request(self) -> dict[str, Any]:
        """The whole request, as keyword arguments for the vendor's client."""
        ...


class Summarizer(Protocol):
    """Summarizes part of a conversation, as a model would."""

    async def summarize(self, job: SummaryJob) -> object:
        """Return the summary as text, or the provider's reply that contains it."""
        ...


class WorkspaceSource(Protocol):
    """Reads attachments, only from inside its own root."""

    @property
    def name(self) -> str:
        """Its name for people."""
        ...

    async def read(self, reference: str, shape: Shape) -> LoadedItem | LeftOut:
        """Return the item that `reference` names, or why it is unavailable."""
        ...


# Fetches the bytes of a picture on the web, up to a size, or explains why they are unavailable.
FetchPicture = Callable[[str, int], Awaitable[FetchedResource | UnfetchedResource]]


@runtime_checkable
class BundleSource(Protocol):
    """A workspace in which one reference may resolve to several items: a folder to its notes, a
    note to its embeds."""

    @property
    def id(self) -> str:
        """An id that distinguishes this workspace from all others."""
        ...

    async def gather(
        self,
        reference: str,
        shape: Shape,
        *,
        embed_depth: int = 1,
        fetch_picture: FetchPicture | None = None,
    ) -> GatheredItems:
        """Return the item that `reference` names, and the items that come along with it."""
        ...

    async def find_moved(self, item: Item) -> str | None:
        """Return the new path of a note that is no longer where `item` was read: the only path with
        the same content, or else the same name. None if there is none, or more than one."""
        ...


@runtime_checkable
class NoteSource(Protocol):
    """The searchable notes of a workspace."""

    async def catalogue(self, progress: Progress | None = None) -> Catalogue:
        """Return all current notes; only changed ones are read again."""
        ...

    async def texts(self, wanted: Sequence[tuple[str, Passage]]) -> Sequence[str | None]:
        """Return the text of passages as it is searched and covered by their digests, each given
        with the path of its note. None if the note has changed."""
        ...

    async def excerpts(self, wanted: Sequence[tuple[str, Passage]]) -> Sequence[Excerpt | None]:
        """Return the passages as written in their notes, with the kinds of secrets in them,
        including partial ones. None if the note has changed."""
        ...

    def take_warnings(self) -> Sequence[str]:
        """Return problems with storing metadata of notes; each is returned once."""
        ...


@runtime_checkable
class SearchedNoteSource(NoteSource, KnownTerms, Protocol):
    """A source of notes that collects their terms while reading them for a search, and saves its
    metadata once the search is answered."""

    async def catalogue_to_search(self, progress: Progress | None = None) -> Catalogue:
        """Like `catalogue`, but the terms of the notes read become available."""
        ...

    def save(self) -> None:
        """Save the metadata of notes in the background."""
        ...


class WebSource(Protocol):
    """Fetches what the rules allow, and nothing else."""

    async def page(self, url: str, rules: WebRules) -> LoadedItem | LeftOut:
        """Return the page as an item: its main text, under its canonical address."""
        ...

    async def picture(
        self, url: str, rules: WebRules, limit: int
    ) -> FetchedResource | UnfetchedResource:
        """Return the bytes of a picture, up to `limit`."""
        ...


class WebSearch(Protocol):
    """Searches the web with a service chosen by a person. Its results are screened: addresses of
    public pages, short texts."""

    @property
    def name(self) -> str:
        """The name of the service that receives queries, for people."""
        ...

    async def search(self, query: str, limit: int) -> FoundPages | UnfetchedResource:
        """Return up to about `limit` pages for a query, or why there are none."""
        ...


class MemorySource(Protocol):
    """The text that a person wants remembered in every session."""

    @property
    def name(self) -> str:
        """The name used for it in the reason of a change."""
        ...

    async def read(self) -> str:
        """Return the current text; empty if there is none.

        Raises:
            UsageError: it exists and cannot be read.
        """
        ...


class Provider(Protocol):
    """Sends encoded requests to a model and streams the answer."""

    def stream(self, body: Mapping[str, Any]) -> AsyncIterator[Piece]:
        """Yield the pieces of the answer; the last one is the whole `Reply`. An interrupted answer
        ends without one. Closing the iterator stops the model.

        Raises:
            RequestTooLong: the model reports that the request does not fit its window.
            ProviderError: there is no answer, and why.
        """
        ...


@runtime_checkable
class SessionKeeper(Protocol):
    """One or more providers that keep data for a session while it is open."""

    async def release_session(self, session: str) -> None:
        """Release the session's data; called when it is closed."""
        ...


class CacheCharge(Protocol):
    """The cost of one explicit cache for a period: reserved before, settled after."""

    async def confirm(self, tokens: int) -> None:
        """Report that it was created, or renewed, with this many tokens."""
        ...

    async def fail(self, error: BaseException) -> None:
        """Report that it was not created, or that this is unknown."""
        ...

    async def end(self, seconds: float) -> None:
        """Report that it was stored for this many seconds."""
        ...


class CachePayer(Protocol):
    """Pays for the explicit caches of a session."""

    async def reserve_cache(
        self, tokens: int, seconds: float, *, creates: bool
    ) -> CacheCharge | None:
        """Reserve the cost of storing this many tokens for this long, and, if it `creates` the
        cache, of sending them. Returns None if a limit forbids it."""
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
    """Runs tools. A tool's failure is returned as its result: only a cancellation escapes. A host
    that has to be opened is also an async context manager."""

    async def toolset(self) -> Toolset:
        """Return the tools that can be offered now; those of a server that does not answer are
        withheld, not waited for."""
        ...

    async def call(self, name: str, arguments: Mapping[str, Any]) -> ToolOutput:
        """Run the tool offered as `name`."""
        ...


class Approver(Protocol):
    """Asks a person whether a call may run."""

    async def decide(self, call: ToolCall, tool: OfferedTool) -> Decision:
        """Return the person's decision about a tool call."""
        ...


class GuideSource(Protocol):
    """The rules and references of an agent."""

    async def guides(self) -> Guides:
        """Return the current rules and references: files may have changed since the last call."""
        ...
