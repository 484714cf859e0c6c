"""What changed from one request to the next, in wire order and for people."""

from collections.abc import Sequence
from difflib import unified_diff
from itertools import groupby
from operator import attrgetter

from lamina.apps.cli.report_text import first_line
from lamina.apps.views.sent_requests import LAYER_NAMES
from lamina.core.audit.rebuilt_request import RebuiltRequest, SegmentChange
from lamina.core.values.message import Image, Text, Thinking, ToolCall, ToolDefinition, ToolResult
from lamina.core.values.prompt import Segment, ToolReferences

MARKS = {"kept": "=", "added": "+", "removed": "-"}
# Lines of a difference that are shown without --full, and the widest column of sources.
DIFF_LINES = 40
SOURCE_WIDTH = 36


def render_difference(recorded: RebuiltRequest, full: bool) -> list[str]:
    """The segments of a request against those of the one before it: what stays is one line a run,
    unless nothing is to be shortened."""
    if recorded.prompt is None:
        return []
    lines = [f"## {_compared(recorded)}", ""]
    base = recorded.base
    if base and base.request.target != recorded.listed.request.target:
        lines += [f"That went to {base.request.target}, whose cache is not this one's.", ""]
    visible_changes = [change for change in recorded.changes if full or change.status != "kept"]
    width = min(
        SOURCE_WIDTH, max((len(change.segment.source) for change in visible_changes), default=0)
    )
    has_moved = False
    for (status, stays), run in groupby(recorded.changes, attrgetter("status", "stays")):
        changes = list(run)
        if not stays and not has_moved:
            has_moved = True
            lines += _first_difference(recorded, changes[0])
        if status == "kept":
            lines.append(_folded(changes))
        if status != "kept" or full:
            for change in changes:
                lines += _change(change, width, full)
    return [*lines, ""]


def _compared(recorded: RebuiltRequest) -> str:
    """Which request it is compared with, and why not with the one right before it."""
    listed, base = recorded.listed, recorded.base
    if base is None:
        if listed.request.base:
            return f"Against request {listed.request.base}, which is lost"
        elsewhere = ": those before it are on other branches, or were never answered"
        return f"Nothing was sent before it on its path{elsewhere * (listed.number > 1)}"
    earlier = ", the last one before it that was answered on its path"
    is_right_before = base.number == listed.number - 1
    return f"Against request {base.number} ({base.request.id}){'' if is_right_before else earlier}"


def _first_difference(recorded: RebuiltRequest, change: SegmentChange) -> list[str]:
    context = recorded.listed.request.context
    broke = context.agreement.broke
    if broke:
        reason = broke.reason or "no reason was recorded"
        return [f"! the prefix moves here ({LAYER_NAMES[broke.layer]}, {broke.source}): {reason}"]
    if change.status == "removed":
        why = "".join(f"; {boundary.reason}" for boundary in context.boundaries)
        return [f"! what goes away here was for that request only, and never to be cached{why}"]
    return []


def _folded(changes: Sequence[SegmentChange]) -> str:
    first, last = (LAYER_NAMES[changes[place].segment.layer] for place in (0, -1))
    where = first if first == last else f"{first} … {last}"
    tokens = sum(change.segment.tokens for change in changes)
    summary = f"= {len(changes):,} segment{'s' * (len(changes) > 1)}, {tokens:,} tokens"
    if changes[0].stays:
        return f"{summary} stay: {where}"
    return f"{summary} are the same behind what changed, and processed again: {where}"


def _change(change: SegmentChange, width: int, full: bool) -> list[str]:
    segment = change.segment
    text = _text(segment)
    head = (
        f"{MARKS[change.status]} {LAYER_NAMES[segment.layer]:<10}  {segment.role:<9}  "
        f"{segment.source:<{width}}  {segment.tokens:>6,}"
    )
    older = change.instead_of or change.supersedes
    if older is not None and (lines := _lines_changed(older.text, text, full)):
        relation = "instead of" if change.instead_of else "above stands"
        return [head, f"    {relation} {older.source}:", *lines]
    if not full:
        same = "  (the same text, joined otherwise to what is in front of it)" if older else ""
        return [f"{head}  {first_line(text.strip())}{same}".rstrip()]
    return [head, *(f"    {line}".rstrip() for line in text.strip("\n").splitlines())]


def _lines_changed(before: str, after: str, full: bool) -> list[str]:
    """What changed between two texts, by lines; all of both, if nothing is to be shortened."""
    old, new = (text.strip("\n").splitlines() for text in (before, after))
    around = len(old) + len(new) if full else 2
    lines = list(unified_diff(old, new, lineterm="", n=around))[2:]
    shown = lines if full else lines[:DIFF_LINES]
    more = len(lines) - len(shown)
    rest = [f"… {more:,} more line{'s' * (more > 1)}; --full shows all"] if more else []
    return [f"    {line}".rstrip() for line in (*shown, *rest)]


def _text(segment: Segment) -> str:
    match segment.content:
        case Text(text=text):
            return text
        case ToolResult(name=name, text=text, is_error=failed):
            return f"{name}{' failed' if failed else ''}: {text}"
        case ToolReferences(name=name, tools=tools):
            return f"{name} loads {', '.join(tool.name for tool in tools)}"
        case ToolCall(name=name, arguments=arguments):
            return f"calls {name} {arguments}"
        case Thinking(text=text):
            return f"(thinks: {text or 'not to be read'})"
        case ToolDefinition(name=name, description=description):
            return f"{name}: {description}"
        case Image(picture=picture):
            size = f" {picture.width}x{picture.height}" if picture.width else ""
            return f"{picture.media_type}{size} {picture.digest[:8]}"
