"""A journal's entries in words, and the whole journal as data."""

from collections.abc import Mapping
from typing import Any, assert_never

import msgspec

from lamina.core.audit.break_causes import count_of
from lamina.core.audit.hook_displays import find_displays
from lamina.core.journal import Journal, path_to
from lamina.core.text.excerpt import brief
from lamina.core.text.money import dollars
from lamina.core.values.entry import (
    AdoptEntry,
    BranchSummaryEntry,
    CustomEntry,
    DecisionEntry,
    Entry,
    EphemeralEntry,
    ForgetEntry,
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
from lamina.core.values.message import Message, Text, Thinking, ToolCall, ToolResult
from lamina.core.values.patch import (
    Display,
    HookDisplay,
    MessagesCachedAppend,
    PatchOp,
    op_name,
    op_reason,
)
from lamina.core.values.request import WHOLE_POOL, ContextItem, ContextTool, RequestContext

# Maximum length of the origin shown for a found item: it may be a query written by the model.
LONGEST = 80


def describe_log(journal: Journal) -> dict[str, Any]:
    """Return the whole journal as data."""
    return {
        "leaf": journal.leaf,
        "path": [entry.id for entry in path_to(journal.leaf, journal.entries)],
        "entries": list(journal.entries.values()),
        "damage": journal.damage,
    }


def describe_entry(entry: Entry) -> tuple[str, str]:
    """Return the kind of an entry in one word, and its content in one or more lines."""
    match entry:
        case SessionEntry(settings=settings, system=system, forked_from=origin, source=source):
            parts = ", ".join(part.name for part in system) or "no system prompt"
            notes = [settings.target, parts]
            notes += [f"agent {entry.with_agent}"] if entry.with_agent else []
            notes += [f"forked from {origin}"] if origin else []
            notes += [f"imported from {source}"] if source else []
            return "session", " · ".join(filter(None, notes))
        case ItemEntry(item=item):
            return "item", f"{item.id} {item.version[:8]} ({len(item.content):,} characters)"
        case TransformEntry(transformer=who, patch=patch):
            if patch.display:
                return "transform", describe_display(HookDisplay(hook=who, display=patch.display))
            ops = map(_describe_op, patch.ops)
            return "transform", f"{'; '.join(ops)} (by {who})"
        case EphemeralEntry(tool_texts=texts, messages=messages, patches=patches):
            names = [text.name for text in texts] + [message.role for message in messages]
            names += [_describe_op(op) for once in patches for op in once.ops]
            shown = "".join(f" · {describe_display(shown)}" for shown in find_displays([entry]))
            return "ephemeral", f"for one request: {', '.join(names)}{shown}"
        case MessageEntry(message=message, interrupted=interrupted, whole_results=wholes):
            cut = " [interrupted]" if interrupted else ""
            return message.role, _where_whole(wholes) + render_message(message) + cut
        case RequestEntry(target=target, tokens=tokens, context=context):
            agreement = context.agreement
            text = f"{target} · {tokens:,} tokens, {agreement.reprocessed:,} of them new"
            if broke := agreement.broke:
                reason = broke.reason or "no reason was recorded"
                text += f" · prefix moved at {broke.source}: {reason}"
            text += _chosen(context)
            text += "".join(f"\nleft out: {omission.detail}" for omission in context.left_out)
            text += "".join(f"\nwarning: {warning}" for warning in context.warnings)
            return "request", text
        case ReplyEntry(usage=usage, stop=stop, verdict=verdict):
            cache = f" · {verdict.meaning}" if verdict else ""
            return "reply", (
                f"{stop} · in {usage.input:,}, cached {usage.cached:,}, out {usage.output:,}{cache}"
            )
        case ResultEntry(result=result, whole=whole):
            asked = f" {entry.query!r}" if entry.query else ""
            text = f"{result.name}{asked}{' failed' if result.is_error else ''}: {result.text}"
            return "result", _where_whole({result.call_id: whole} if whole else {}) + text
        case DecisionEntry(tool=tool, decision=decision):
            return "decision", f"{tool}: {decision.replace('_', ' ')}"
        case SettingsEntry(settings=settings):
            return "settings", msgspec.json.encode(settings).decode()
        case ModelEntry(target=target):
            return "model", target
        case PinEntry(item=item_id, pinned=pinned):
            return "pin" if pinned else "unpin", item_id
        case ForgetEntry(item=item_id):
            return "forget", item_id
        case IncludeEntry(item=item_id, membership=membership):
            word = {"manual": "added", "removed": "removed", "default": "reset to its agent's"}
            return "include", f"{item_id}: {word[membership]}"
        case AdoptEntry(include_modes=modes, with_agent=agent):
            always = [item for item, include in modes.items() if include == "always"]
            shown = ", ".join(always) or "nothing"
            return "adopt", f"the files of {agent or 'its agent'} were adopted; always: {shown}"
        case LeaveEntry():
            return "leave", "the turn was abandoned without a final answer"
        case LeafEntry():
            return "leaf", f"continues after {entry.parent}"
        case LabelEntry(target=target, label=label):
            return "label", f"{target}: {label}" if label else f"{target}: removed"
        case BranchSummaryEntry(branch=branch, summary=summary):
            return "branch", f"left {branch}: {summary}"
        case InfoEntry(name=name):
            return "info", name
        case OpeningEntry(given=given):
            return "opening", f"given again: {', '.join(sorted(given))}"
        case InboxEntry(taken=""):
            return "inbox", f"waits for the next turn: {entry.text}"
        case InboxEntry(taken=taken):
            return "inbox", f"{taken} no longer waits"
        case CustomEntry(kind=kind, data=data):
            return describe_custom_entry(kind, data)
        case UnknownEntry(kind=kind):
            return "unknown", f"an entry of type {kind!r}, unknown to this version"
        case _:
            assert_never(entry)


def describe_display(shown: HookDisplay) -> str:
    """Return in one line what a hook wants a person to see."""
    display = shown.display
    texts = " · ".join(filter(None, (display.title, display.summary)))
    return f"{texts} (by {shown.hook})"


def display_lines(display: Display) -> list[str]:
    """Return the remaining lines of a display: its text, then its data."""
    return [*display.markdown.splitlines(), *display_data(display)]


def display_data(display: Display) -> list[str]:
    """Return what a display contains for programs: its data and its renderer's props."""
    lines = [] if display.data is None else [msgspec.json.encode(display.data).decode()]
    if display.renderer_id or display.renderer_props is not None:
        props = msgspec.json.encode(display.renderer_props).decode()
        lines.append(f"renderer {display.renderer_id}: {props}")
    return lines


def _where_whole(wholes: Mapping[str, str]) -> str:
    """Return how to read the full text of results that were shortened."""
    return "".join(f"(shortened; show all: log --result {call}) " for call in wholes)


def describe_custom_entry(kind: str, data: Any) -> tuple[str, str]:
    """Return what a runner or an application recorded, summarised if the kind is known."""
    if isinstance(data, dict):
        names = [call.get("name", "?") for call in dict_rows(data.get("calls"))]
        calls = ", ".join(map(str, names)) or "no calls"
        match kind:
            case "lamina.search":
                places = [str(hit.get("path", "?")) for hit in dict_rows(data.get("hits"))]
                listed = ", ".join(dict.fromkeys(places)) or "nothing"
                return "search", f"{count_of(data.get('searched', 0), 'note')}: {listed}"
            case "lamina.cited":
                cited = [
                    f"[^{source.get('number', '?')}] {source.get('link', '?')}"
                    for source in dict_rows(data.get("sources"))
                ]
                return "cited", ", ".join(cited) or "nothing"
            case "lamina.plan":
                return "plan", calls
            case "lamina.planned":
                return "planned", calls
            case "lamina.summarized":
                problem = f" · {data['problem']}" if data.get("problem") else ""
                part = f"part {data.get('step')} of {data.get('of')}"
                return "summary", f"{data.get('target')} · {part}{problem}"
            case "lamina.blob":
                return "blob", str(data.get("digest"))
            case "lamina.cache" | "lamina.cache_storage":
                act = "created" if kind == "lamina.cache" else "stored"
                cost = data.get("cost")
                price = f" · {dollars(cost)}" if isinstance(cost, int | float) else ""
                return "cache", f"{act}, {count_of(data.get('tokens', 0), 'token')}{price}"
    return "custom", f"{kind} {msgspec.json.encode(data).decode()}"


def dict_rows(value: Any) -> list[dict[str, Any]]:
    """Return the objects of a list that may have been written by another program."""
    return [row for row in value if isinstance(row, dict)] if isinstance(value, list) else []


def describe_inclusion(source: ContextItem | ContextTool) -> str:
    """Return how an item came to be in a request, such as `always` or `agent 0.73, search`."""
    score = f" {source.score:.2f}" if source.score is not None else ""
    origin = f", {source.origin.replace('_', ' ')}" if source.origin else ""
    place = f" from {brief(source.source, LONGEST)}" if source.origin and source.source else ""
    kept = ", kept from before" if isinstance(source, ContextTool) and source.kept else ""
    return f"{source.include}{score}{origin}{place}{kept}"


def describe_listing(tool: ContextTool, context: RequestContext) -> str:
    """Return how a tool came to be in the list, and whether it may be called."""
    barred = "" if context.allows(tool.name) else ", not callable"
    return f"{describe_inclusion(tool)}{barred}"


def describe_priority(item: ContextItem) -> str:
    """Return an item's priority, and its priority before relevance changed it."""
    if item.essential:
        return "essential"
    if item.priority_before is None:
        return str(item.priority)
    return f"{item.priority_before} → {item.priority}"


def _chosen(context: RequestContext) -> str:
    """Return what was found for the question, on a line of its own."""
    items: list[ContextItem | ContextTool] = [item for item in context.items if item.origin]
    items += [tool for tool in context.tools if tool.origin not in ("", WHOLE_POOL)]
    names = ", ".join(f"{item.item} ({describe_inclusion(item)})" for item in items)
    return f"\nchosen: {names}" if names else ""


def render_message(message: Message) -> str:
    """Return a message's text with its calls, results and items."""
    parts: list[str] = []
    for block in message.blocks:
        match block:
            case Text(text=text) if text.strip():
                parts.append(text.strip())
            case Thinking(text=text) if text.strip():
                parts.append(f"(thinks: {text.strip()})")
            case ToolCall(name=name, arguments=arguments):
                parts.append(f"calls {name} {arguments}")
            case ToolResult(name=name, text=text, is_error=failed):
                parts.append(f"{name}{' failed' if failed else ''}: {text.strip()}")
            case _:
                pass
    uses = message.context.uses if message.context else ()
    if uses:
        parts.append("[" + ", ".join(f"{use.item} {use.form}" for use in uses) + "]")
    return "\n".join(parts)


def _describe_op(op: PatchOp) -> str:
    if isinstance(op, MessagesCachedAppend):
        texts = [f"{m.custom_type or m.role}: {render_message(m)}" for m in op.messages]
        return f"added {'; '.join(texts)}"
    return f"{op_name(op)}: {op_reason(op)}".rstrip(": ")
