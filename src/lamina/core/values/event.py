"""Defines the events of a turn, for observers. Events only report: the outcome of a turn is in its
answer and in the journal."""

from typing import Literal

from msgspec import Struct

from lamina.core.values.message import ToolCall, ToolResult
from lamina.core.values.patch import Display
from lamina.core.values.prompt import LayerSize
from lamina.core.values.request import CacheVerdict, RequestContext
from lamina.core.values.tool import Decision, OfferedTool
from lamina.core.values.usage import Usage

BlockKind = Literal["text", "thinking", "action"]
# Why a turn ended: answered, stopped by a person, out of requests, waiting for a decision on calls,
# or ended with calls that nothing here runs.
Ending = Literal["answered", "aborted", "limit", "waiting", "called"]


class EventBase(Struct, frozen=True, kw_only=True, tag_field="type"):
    pass


class RequestStarted(EventBase, frozen=True, kw_only=True, tag="request"):
    """A request is about to be sent; `request` is its id in the journal."""

    request: str
    target: str
    context: RequestContext
    layers: tuple[LayerSize, ...]


class HookShown(EventBase, frozen=True, kw_only=True, tag="display"):
    """A hook has information about its change for a person."""

    hook: str
    display: Display


class PromptProgress(EventBase, frozen=True, kw_only=True, tag="reading"):
    """The model is reading the prompt."""

    done: int
    total: int
    cached: int = 0


class BlockStarted(EventBase, frozen=True, kw_only=True, tag="block_start"):
    """A new block of the answer starts; an action is a tool call being written."""

    index: int
    kind: BlockKind
    name: str = ""


class BlockDelta(EventBase, frozen=True, kw_only=True, tag="block_delta"):
    """More text for a block of the answer."""

    index: int
    text: str


class BlockEnded(EventBase, frozen=True, kw_only=True, tag="block_end"):
    """A block of the answer is complete."""

    index: int


class AnswerHeld(EventBase, frozen=True, kw_only=True, tag="answer_held"):
    """An answer arrives but is held back for hooks that change answers: the blocks follow once the
    hooks are done."""

    hooks: tuple[str, ...]


class AnswerChanged(EventBase, frozen=True, kw_only=True, tag="answer_changed"):
    """An answer was changed after its blocks were reported, by hooks that had not declared this:
    `text` is kept instead."""

    hooks: tuple[str, ...]
    text: str


class ToolStarted(EventBase, frozen=True, kw_only=True, tag="tool_call"):
    """A tool is about to run."""

    call: ToolCall
    label: str = ""


class ToolFinished(EventBase, frozen=True, kw_only=True, tag="tool_result"):
    """A tool has run; `result` is sent to the model."""

    result: ToolResult
    seconds: float = 0.0


class ApprovalWanted(EventBase, frozen=True, kw_only=True, tag="approval"):
    """A call waits for a decision."""

    call: ToolCall
    tool: OfferedTool


class ApprovalDecided(EventBase, frozen=True, kw_only=True, tag="decision"):
    """A person decided on a call."""

    call_id: str
    decision: Decision


class UsageReported(EventBase, frozen=True, kw_only=True, tag="usage"):
    """The cost of a request in tokens and money, and the time until its first word arrived."""

    request: str
    usage: Usage
    verdict: CacheVerdict | None = None
    # In US dollars; None if the price is unknown.
    cost: float | None = None
    first_s: float | None = None
    total_s: float = 0.0


class WarningIssued(EventBase, frozen=True, kw_only=True, tag="warning"):
    """A warning for a person."""

    text: str


class SummaryStep(EventBase, frozen=True, kw_only=True, tag="summary"):
    """A part of history is being summarized, because all of it is too long for one summary."""

    step: int
    of: int


class RequestRetried(EventBase, frozen=True, kw_only=True, tag="retry"):
    """The request is sent again, made smaller; anything streamed for it before is void."""

    reason: str


class TurnEnded(EventBase, frozen=True, kw_only=True, tag="end"):
    """The turn has ended, and why; always the last event."""

    ending: Ending
    answer: str
    requests: int = 1


Event = (
    RequestStarted
    | HookShown
    | PromptProgress
    | BlockStarted
    | BlockDelta
    | BlockEnded
    | AnswerHeld
    | AnswerChanged
    | ToolStarted
    | ToolFinished
    | ApprovalWanted
    | ApprovalDecided
    | UsageReported
    | WarningIssued
    | SummaryStep
    | RequestRetried
    | TurnEnded
)
