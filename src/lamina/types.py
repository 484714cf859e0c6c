"""The values in public signatures, results and events, and the Protocols for a store, a provider, a
workspace or an approver of your own.

It also has the words of each `Literal` (`Decision`, `Ending`...) and the functions that name items.
"""

from lamina.adapters.tools.functions import FunctionTool
from lamina.apps.wiring.opening_arguments import AgentOpening, SessionOpening
from lamina.core.audit.dropped_history import DroppedHistory
from lamina.core.journal.journal import Journal
from lamina.core.ledger.cost import CacheRewrite, CostRange
from lamina.core.notes.scopes import Moment
from lamina.core.ports import (
    Approver,
    BundleSource,
    Clock,
    Corpus,
    GuideSource,
    Index,
    JournalStore,
    MemorySource,
    NoteSource,
    OpenJournal,
    Provider,
    Providers,
    SessionKeeper,
    SpendAccount,
    SpendLedger,
    Summarizer,
    SummaryJob,
    TargetBook,
    TokenCounter,
    ToolHost,
    WebSearch,
    WebSource,
    Wire,
    WorkspaceSource,
)
from lamina.core.text.citations import RenumberedAnswer, Source
from lamina.core.values.agent import AgentChange, Guide, Guides, Problem, Trust
from lamina.core.values.collections import Chain
from lamina.core.values.damage import Damage
from lamina.core.values.entry import (
    AdoptEntry,
    BranchSummaryEntry,
    CustomEntry,
    DecisionEntry,
    Delivery,
    Entry,
    EphemeralEntry,
    ForgetEntry,
    FoundTool,
    InboxEntry,
    IncludeEntry,
    InfoEntry,
    ItemEntry,
    LabelEntry,
    LeafEntry,
    LeaveEntry,
    MessageEntry,
    ModelEntry,
    OpeningEntry,
    PinEntry,
    ReplyEntry,
    RequestEntry,
    ResultEntry,
    SessionEntry,
    SettingsEntry,
    TransformEntry,
    UnknownEntry,
)
from lamina.core.values.envelope import Envelope, SystemParts
from lamina.core.values.event import (
    AnswerChanged,
    AnswerHeld,
    ApprovalDecided,
    ApprovalWanted,
    BlockDelta,
    BlockEnded,
    BlockKind,
    BlockStarted,
    Ending,
    Event,
    HookShown,
    PromptProgress,
    RequestRetried,
    RequestStarted,
    SummaryStep,
    ToolFinished,
    ToolStarted,
    TurnEnded,
    UsageReported,
    WarningIssued,
)
from lamina.core.values.item import (
    Attachment,
    AttachmentSpec,
    Excerpt,
    Include,
    ItemId,
    ItemKind,
    LoadedItem,
    Picture,
    Provenance,
    Shape,
    item_id,
    note_id,
    query_id,
    selection_id,
    tool_id,
    url_id,
)
from lamina.core.values.message import (
    AbsentAttachment,
    Block,
    Context,
    Image,
    LoadedTool,
    LoadedTools,
    Message,
    Role,
    Text,
    Thinking,
    ThinkingBinding,
    ToolCall,
    Use,
)
from lamina.core.values.note import (
    Catalogue,
    Hit,
    ListItem,
    Note,
    NoteQuery,
    NoteSearchResult,
    Passage,
    SearchTier,
    TimeRange,
)
from lamina.core.values.patch import HookDisplay
from lamina.core.values.prices import Prices, PriceTier
from lamina.core.values.prompt import Layer, LayerSize, Prompt, Segment, ToolReferences
from lamina.core.values.request import (
    Agreement,
    Boundary,
    BoundaryKind,
    Break,
    CacheVerdict,
    ContextItem,
    ContextTool,
    Fit,
    GatheredItems,
    HistoryPrice,
    LeftOut,
    MovedPlace,
    Placement,
    RequestContext,
    WarmStart,
)
from lamina.core.values.selection import (
    AgentChoice,
    ChosenItem,
    Document,
    Evidence,
    NearMiss,
    Preset,
    SearchSettings,
)
from lamina.core.values.settings import CacheRules, Target
from lamina.core.values.spend_limits import (
    ReachedLimit,
    Reservation,
    Settlement,
    SpendEntry,
    SpendLimits,
    SpendRequest,
    SpendStanding,
    SpendSum,
)
from lamina.core.values.tool import (
    ApprovalPolicy,
    Decision,
    OfferedTool,
    Permission,
    ToolOutput,
    Toolset,
    WithheldTool,
)
from lamina.core.values.totals import DeletedSession, ListedSession, SessionTotals, TargetUsage
from lamina.core.values.usage import InputTransformation, Usage
from lamina.core.values.web_access import (
    FetchedResource,
    FoundPage,
    FoundPages,
    UnfetchedResource,
    WebAccess,
    WebRules,
)
from lamina.core.values.wire import (
    CallPiece,
    Piece,
    ProgressPiece,
    Reply,
    ResentPiece,
    TextPiece,
    ThinkingPiece,
    WireRequest,
)
from lamina.engine.runners.agent_search import SearchedKind
from lamina.engine.runners.answer import CitedSource, PlanPreview, Preview
from lamina.engine.runners.approvals import WaitingCall
from lamina.engine.runners.mode import Listener
from lamina.engine.session.compactor import CompactionOutcome
from lamina.engine.session.members import SessionItem
from lamina.engine.session.tree import TreePosition
from lamina.engine.sources.attachments import Attachable, Attachments
from lamina.engine.sources.changes import ChangeKind, LibraryChange
from lamina.engine.sources.hooks import (
    CancelSignal,
    ContextEvent,
    Hook,
    HookReason,
    MessageEvent,
    TurnItem,
)

__all__ = [
    # Messages and their parts.
    "AbsentAttachment",
    "Block",
    "Chain",
    "Context",
    "Envelope",
    "Image",
    "Message",
    "Role",
    "SystemParts",
    "Text",
    "Thinking",
    "ThinkingBinding",
    "ToolCall",
    "Use",
    # What a request was built from, and its cost.
    "Agreement",
    "Boundary",
    "BoundaryKind",
    "Break",
    "CacheVerdict",
    "ContextItem",
    "ContextTool",
    "Fit",
    "HistoryPrice",
    "GatheredItems",
    "Layer",
    "LayerSize",
    "LeftOut",
    "MovedPlace",
    "Placement",
    "Prompt",
    "RequestContext",
    "WarmStart",
    "Segment",
    "Usage",
    # Results of a session and its runners.
    "ChangeKind",
    "CitedSource",
    "CompactionOutcome",
    "Damage",
    "DroppedHistory",
    "Ending",
    "Hit",
    "LibraryChange",
    "NoteSearchResult",
    "SearchTier",
    "PlanPreview",
    "Preview",
    "RenumberedAnswer",
    "SessionItem",
    "Source",
    "TreePosition",
    "WaitingCall",
    # Events of a turn.
    "AnswerChanged",
    "AnswerHeld",
    "ApprovalDecided",
    "ApprovalWanted",
    "BlockDelta",
    "BlockEnded",
    "BlockKind",
    "BlockStarted",
    "Event",
    "HookShown",
    "Listener",
    "PromptProgress",
    "RequestRetried",
    "RequestStarted",
    "SummaryStep",
    "ToolFinished",
    "ToolStarted",
    "TurnEnded",
    "UsageReported",
    "WarningIssued",
    # Targets, tools, and words used in settings.
    "ApprovalPolicy",
    "CacheRules",
    "Decision",
    "Delivery",
    "FunctionTool",
    "OfferedTool",
    "Permission",
    "Preset",
    "PriceTier",
    "Prices",
    "Evidence",
    "SearchSettings",
    "Target",
    "ToolOutput",
    "Toolset",
    "Trust",
    "WebAccess",
    "WithheldTool",
    # Ports, and the values that pass through them.
    "Approver",
    "BundleSource",
    "CallPiece",
    "Catalogue",
    "Clock",
    "Corpus",
    "DeletedSession",
    "Document",
    "FetchedResource",
    "FoundPage",
    "FoundPages",
    "Guide",
    "Guides",
    "GuideSource",
    "Index",
    "Journal",
    "JournalStore",
    "ListedSession",
    "ListItem",
    "MemorySource",
    "Note",
    "NoteQuery",
    "NoteSource",
    "OpenJournal",
    "Passage",
    "TimeRange",
    "Piece",
    "Problem",
    "ProgressPiece",
    "ResentPiece",
    "Provider",
    "Providers",
    "Reply",
    "SessionKeeper",
    "SessionTotals",
    "Summarizer",
    "SummaryJob",
    "TargetBook",
    "TargetUsage",
    "TextPiece",
    "ThinkingPiece",
    "TokenCounter",
    "ToolHost",
    "UnfetchedResource",
    "WebRules",
    "WebSearch",
    "WebSource",
    "WorkspaceSource",
]
# Values passed when opening, and what a vendor is sent.
__all__ += ["AgentOpening", "SessionOpening", "Wire", "WireRequest"]
# Attachments, and their names.
__all__ += [
    "Attachable", "Attachment", "AttachmentSpec", "Attachments", "Excerpt", "Include", "ItemId",
    "ItemKind", "LoadedItem", "Picture", "Provenance", "Shape", "item_id", "note_id", "query_id",
    "selection_id", "tool_id", "url_id",
]  # fmt: skip
# Tools that a vendor loads where a result names them.
__all__ += ["LoadedTool", "LoadedTools", "ToolReferences"]
# What hooks receive.
__all__ += [
    "CancelSignal", "ContextEvent", "Hook", "HookDisplay", "HookReason", "MessageEvent", "TurnItem",
]  # fmt: skip
# What a question would choose from an agent, and the values a search accepts.
__all__ += ["AgentChange", "AgentChoice", "ChosenItem", "Moment", "NearMiss", "SearchedKind"]
# Journal entries.
__all__ += [
    "AdoptEntry", "BranchSummaryEntry", "CustomEntry", "DecisionEntry", "Entry", "EphemeralEntry",
    "ForgetEntry", "FoundTool", "InboxEntry", "IncludeEntry", "InfoEntry", "InputTransformation",
    "ItemEntry", "LabelEntry", "LeafEntry", "LeaveEntry", "MessageEntry", "ModelEntry",
    "OpeningEntry", "PinEntry", "ReplyEntry", "RequestEntry", "ResultEntry", "SessionEntry",
    "SettingsEntry", "TransformEntry", "UnknownEntry",
]  # fmt: skip
# Money.
__all__ += [
    "CacheRewrite", "CostRange", "ReachedLimit", "Reservation", "Settlement", "SpendAccount",
    "SpendEntry", "SpendLedger", "SpendLimits", "SpendRequest", "SpendStanding", "SpendSum",
]  # fmt: skip
