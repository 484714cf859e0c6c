"""What happens during a turn, for those who watch. Events only report: the outcome of a turn is in
its answer and in the journal."""

from typing import Literal

from msgspec import Struct

from lamina.core.values.message import ToolCall, ToolResult
from lamina.core.values.patch import Display
from lamina.core.values.prompt import LayerSize
from lamina.core.values.request import CacheVerdict, RequestContext
from lamina.core.values.tool import Decision, OfferedTool
from lamina.core.values.usage import Usage

BlockKind = Literal["text", "thinking", "action"]
# Why a turn is over: answered, stopped by somebody, out of requests, calls wait for a decision, or
# calls that nobody here runs.
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
    """What a hook wants a person to be shown of the change it made."""

    hook: str
    display: Display


class PromptProgress(EventBase, frozen=True, kw_only=True, tag="reading"):
    """The model reads the prompt."""

    done: int
    total: int
    cached: int = 0


class BlockStarted(EventBase, frozen=True, kw_only=True, tag="block_start"):
    """The answer goes on with a block; an action is a tool call that is being written."""

    index: int
    kind: BlockKind
    name: str = ""


class BlockDelta(EventBase, frozen=True, kw_only=True, tag="block_delta"):
    """A block of the answer goes on with `text`."""

    index: int
    text: str


class BlockEnded(EventBase, frozen=True, kw_only=True, tag="block_end"):
    """A block of the answer is complete."""

    index: int


class AnswerHeld(EventBase, frozen=True, kw_only=True, tag="answer_held"):
    """An answer comes in and is held back for hooks that change answers: what they leave of it
    follows in blocks."""

    hooks: tuple[str, ...]


class AnswerChanged(EventBase, frozen=True, kw_only=True, tag="answer_changed"):
    """Hooks that had not declared it changed an answer after it was told in blocks: `text` is what
    is kept instead."""

    hooks: tuple[str, ...]
    text: str


class ToolStarted(EventBase, frozen=True, kw_only=True, tag="tool_call"):
    """A tool is about to run."""

    call: ToolCall
    label: str = ""


class ToolFinished(EventBase, frozen=True, kw_only=True, tag="tool_result"):
    """A tool has run; `result` is what the model gets."""

    result: ToolResult
    seconds: float = 0.0


class ApprovalWanted(EventBase, frozen=True, kw_only=True, tag="approval"):
    """A call waits for a decision."""

    call: ToolCall
    tool: OfferedTool


class ApprovalDecided(EventBase, frozen=True, kw_only=True, tag="decision"):
    """A person decided about a call."""

    call_id: str
    decision: Decision


class UsageReported(EventBase, frozen=True, kw_only=True, tag="usage"):
    """What a request cost, in tokens and money, and how long the first word took."""

    request: str
    usage: Usage
    verdict: CacheVerdict | None = None
    # In US dollars; None if nobody knows the price.
    cost: float | None = None
    first_s: float | None = None
    total_s: float = 0.0


class WarningIssued(EventBase, frozen=True, kw_only=True, tag="warning"):
    """Something that a person should know."""

    text: str


class SummaryStep(EventBase, frozen=True, kw_only=True, tag="summary"):
    """History is too long for one summary: a part of it is being summed up."""

    step: int
    of: int


class RequestRetried(EventBase, frozen=True, kw_only=True, tag="retry"):
    """The request is sent anew, made smaller; what was streamed of it before is void."""

    reason: str


class TurnEnded(EventBase, frozen=True, kw_only=True, tag="end"):
    """The turn is over, and why; always the last event."""

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
