"""Journal entries: an append-only tree. What they hold is all that a rebuild needs."""

from msgspec import Struct

from lamina.values.envelope import Options, SystemPart
from lamina.values.item import Item, ItemId
from lamina.values.message import Message, ToolDefinition, ToolText
from lamina.values.patch import Patch
from lamina.values.request import CacheVerdict, RequestContext
from lamina.values.settings import Promotion, Settings
from lamina.values.usage import Usage

FORMAT = 1
RENDERER = 1


class EntryBase(Struct, frozen=True, kw_only=True, tag_field="type", omit_defaults=True):
    id: str
    parent: str | None
    at: float


class SessionEntry(EntryBase, frozen=True, kw_only=True, tag="session"):
    session: str
    system: tuple[SystemPart, ...] = ()
    tools: tuple[ToolDefinition, ...] = ()
    options: Options = Options()
    settings: Settings = Settings()
    workspace: str = ""
    format: int = FORMAT
    renderer: int = RENDERER


class ItemEntry(EntryBase, frozen=True, kw_only=True, tag="item"):
    """The content of one item version, once."""

    item: Item


class TransformEntry(EntryBase, frozen=True, kw_only=True, tag="context_transform"):
    transformer: str
    patch: Patch


class EphemeralEntry(EntryBase, frozen=True, kw_only=True, tag="ephemeral"):
    """Text for one request only. It is never part of a rebuilt context."""

    tool_texts: tuple[ToolText, ...] = ()


class MessageEntry(EntryBase, frozen=True, kw_only=True, tag="message"):
    message: Message
    interrupted: bool = False


class RequestEntry(EntryBase, frozen=True, kw_only=True, tag="request"):
    """A request as it was about to be sent. The digests of its segments in wire order are those of
    the request `base` up to `kept`, then `digests`; storing them whole would make a session's
    journal grow with the square of its length."""

    target: str
    context: RequestContext
    # The leaf in front of everything that was written for this request: preparing again instead
    # of committing starts a sibling there.
    before: str
    base: str | None
    kept: int
    digests: tuple[str, ...]
    promotion: Promotion = "lazy"
    cached_run: int
    tokens: int
    cached_tokens: int
    calibration: float = 1.0


class ReplyEntry(EntryBase, frozen=True, kw_only=True, tag="reply"):
    """Closes a request: what came back and what the provider said it cost."""

    request: str
    usage: Usage
    stop: str
    model: str = ""
    verdict: CacheVerdict | None = None


class SettingsEntry(EntryBase, frozen=True, kw_only=True, tag="settings"):
    settings: Settings


class PinEntry(EntryBase, frozen=True, kw_only=True, tag="pin"):
    """Pinned items are essential, named every turn, and survive boundaries."""

    item: ItemId
    version: str = ""
    pinned: bool = True


class LeaveEntry(EntryBase, frozen=True, kw_only=True, tag="leave"):
    """The turn under way was left without a final answer; the next message begins another."""


class ForgetEntry(EntryBase, frozen=True, kw_only=True, tag="forget"):
    """The item leaves the library at the next boundary."""

    item: ItemId


Entry = (
    SessionEntry
    | ItemEntry
    | TransformEntry
    | EphemeralEntry
    | MessageEntry
    | RequestEntry
    | ReplyEntry
    | SettingsEntry
    | PinEntry
    | ForgetEntry
    | LeaveEntry
)
