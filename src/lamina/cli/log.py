"""`lamina log`: a session's entries for people and for machines."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any, assert_never

import msgspec

from lamina.audit.dropped_history import DroppedHistory, find_dropped_history
from lamina.audit.requests import waiting_request
from lamina.journal import Journal, path_to
from lamina.session.tree import labels_of, name_of
from lamina.values.entry import (
    BranchSummaryEntry,
    CustomEntry,
    DecisionEntry,
    Entry,
    EphemeralEntry,
    ForgetEntry,
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
from lamina.values.message import Message, Text, Thinking, ToolCall, ToolResult
from lamina.values.patch import op_name, op_reason
from lamina.values.request import ContextItem, ContextTool, RequestContext

WIDTH = 100


def render_log(journal: Journal, *, tree: bool, dropped: bool, full: bool) -> str:
    """The text that the command prints."""
    entries = tuple(journal.entries.values())
    path = path_to(journal.leaf, journal.entries)
    if dropped:
        return (
            "\n".join(_gone(history, full) for history in find_dropped_history(path))
            or "Nothing was dropped."
        )
    labels = labels_of(entries)
    header = entries[0]
    assert isinstance(header, SessionEntry)
    lines = [f"# {name_of(entries) or header.session}", "", f"session {header.session}"]
    branches = sum(1 for count in _children(entries).values() if len(count) > 1)
    if branches and not tree:
        points = "branching point" + "s" * (branches > 1)
        lines.append(f"{branches} {points}; --tree shows what is not on the active path")
    lines.append("")
    if tree:
        lines += _tree(entries, {entry.id for entry in path}, labels)
    else:
        for entry in path:
            lines += _entry(entry, labels, full)
        if waiting_request(path):
            lines.append("The last request was never answered; the session can go on with it.")
    if journal.damage:
        lines += ["", f"## Damage ({len(journal.damage)})", ""]
        lines += [f"- {damage.kind}: {damage}" for damage in journal.damage]
    return "\n".join(lines)


def describe_log(journal: Journal) -> bytes:
    """The whole journal as JSON."""
    return msgspec.json.format(
        msgspec.json.encode(
            {
                "leaf": journal.leaf,
                "path": [entry.id for entry in path_to(journal.leaf, journal.entries)],
                "entries": list(journal.entries.values()),
                "damage": journal.damage,
            }
        ),
        indent=2,
    )


def _children(entries: Iterable[Entry]) -> Mapping[str, list[Entry]]:
    behind: dict[str, list[Entry]] = {}
    for entry in entries:
        if entry.parent is not None:
            behind.setdefault(entry.parent, []).append(entry)
    return behind


def _entry(entry: Entry, labels: Mapping[str, str], full: bool) -> list[str]:
    label = f"  «{labels[entry.id]}»" if entry.id in labels else ""
    moment = datetime.fromtimestamp(entry.at).strftime("%m-%d %H:%M:%S")
    kind, said = describe_entry(entry)
    first, *rest = said.splitlines() or [""]
    if not full:
        first = first if len(first) <= WIDTH else f"{first[: WIDTH - 1]}…"
        told = [line for line in rest if isinstance(entry, RequestEntry)]
        if len(rest) > len(told):
            first += f" …(+{len(rest)} line{'s' * (len(rest) > 1)})"
        rest = told
    lines = [f"{entry.id}  {moment}  {kind:<10} {first}{label}".rstrip()]
    lines += [f"{'':>35}{line}" for line in rest]
    if full and isinstance(entry, TransformEntry) and entry.patch.display:
        lines += [f"{'':>35}{line}" for line in entry.patch.display.markdown.splitlines()]
    return lines


def _tree(entries: Sequence[Entry], active: set[str], labels: Mapping[str, str]) -> list[str]:
    """Every entry, branches indented; a star marks the active path."""
    behind = _children(entries)
    lines: list[str] = []
    waiting = [(entries[0], 0)]
    while waiting:
        entry, depth = waiting.pop()
        mark = "*" if entry.id in active else " "
        kind, said = describe_entry(entry)
        first = (said.splitlines() or [""])[0]
        label = f"  «{labels[entry.id]}»" if entry.id in labels else ""
        room = max(20, WIDTH - 2 * depth)
        shown = first if len(first) <= room else f"{first[: room - 1]}…"
        lines.append(f"{mark} {'  ' * depth}{entry.id} {kind} {shown}{label}".rstrip())
        # What is popped first are the branches; the trunk reads on to the end of the page.
        children = sorted(behind.get(entry.id, ()), key=lambda entry: entry.id in active)
        waiting += [(child, depth) for child in children[-1:]]
        waiting += [(child, depth + 1) for child in reversed(children[:-1])]
    return lines


def describe_entry(entry: Entry) -> tuple[str, str]:
    """What kind of entry it is, in a word, and what it says, in a line or more."""
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
                shown = patch.display.title
                if patch.display.summary:
                    shown += f" · {patch.display.summary}"
                return "transform", f"{shown} (by {who})"
            ops = [f"{op_name(op)}: {op_reason(op)}".rstrip(": ") for op in patch.ops]
            return "transform", f"{'; '.join(ops)} (by {who})"
        case EphemeralEntry(tool_texts=texts, messages=messages):
            names = [text.name for text in texts] + [message.role for message in messages]
            return "ephemeral", f"for one request: {', '.join(names)}"
        case MessageEntry(message=message, interrupted=interrupted):
            cut = " [interrupted]" if interrupted else ""
            return message.role, render_message(message) + cut
        case RequestEntry(target=target, tokens=tokens, context=context):
            agreement = context.agreement
            said = f"{target} · {tokens:,} tokens, {agreement.reprocessed:,} of them new"
            if agreement.broke:
                said += f" · prefix moved at {agreement.broke.source}: {agreement.broke.reason}"
            said += _chosen(context)
            said += "".join(f"\nleft out: {omission.detail}" for omission in context.left_out)
            return "request", said + "".join(
                f"\nwarning: {warning}" for warning in context.warnings
            )
        case ReplyEntry(usage=usage, stop=stop, verdict=verdict):
            cache = f" · {verdict.meaning}" if verdict else ""
            return "reply", (
                f"{stop} · in {usage.input:,}, cached {usage.cached:,}, out {usage.output:,}{cache}"
            )
        case ResultEntry(result=result):
            return "result", f"{result.name}{' failed' if result.is_error else ''}: {result.text}"
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
            word = {"manual": "added", "removed": "removed", "default": "as its agent has it"}
            return "include", f"{item_id}: {word[membership]}"
        case LeaveEntry():
            return "leave", "the turn was left without a final answer"
        case LeafEntry():
            return "leaf", f"goes on behind {entry.parent}"
        case LabelEntry(target=target, label=label):
            return "label", f"{target}: {label}" if label else f"{target}: removed"
        case BranchSummaryEntry(branch=branch, summary=summary):
            return "branch", f"left {branch}: {summary}"
        case InfoEntry(name=name):
            return "info", name
        case OpeningEntry(given=given):
            return "opening", f"given anew: {', '.join(sorted(given))}"
        case CustomEntry(kind=kind, data=data):
            return describe_custom_entry(kind, data)
        case UnknownEntry(kind=kind):
            return "unknown", f"an entry of type {kind!r}, which this version does not know"
        case _:
            assert_never(entry)


def describe_custom_entry(kind: str, data: Any) -> tuple[str, str]:
    """What a runner or an application noted; of what we know, what it comes to."""
    if isinstance(data, dict):
        names = [each.get("name", "?") for each in _dicts(data.get("calls"))]
        called = ", ".join(map(str, names)) or "no calls"
        match kind:
            case "lamina.search":
                places = [str(each.get("path", "?")) for each in _dicts(data.get("hits"))]
                listed = ", ".join(dict.fromkeys(places)) or "nothing"
                return "search", f"{data.get('searched', 0):,} notes: {listed}"
            case "lamina.plan":
                return "plan", called
            case "lamina.planned":
                return "planned", called
    return "custom", f"{kind} {msgspec.json.encode(data).decode()}"


def _dicts(value: Any) -> list[dict[str, Any]]:
    return [each for each in value if isinstance(each, dict)] if isinstance(value, list) else []


def describe_inclusion(each: ContextItem | ContextTool) -> str:
    """How an item came to be in a request, as `always` or `agent 0.73, search`."""
    score = f" {each.score:.2f}" if each.score is not None else ""
    found = f", {each.origin}" if each.origin else ""
    source = f" from {each.source}" if each.origin and each.source else ""
    kept = ", kept from before" if isinstance(each, ContextTool) and each.kept else ""
    return f"{each.include}{score}{found}{source}{kept}"


def describe_priority(item: ContextItem) -> str:
    """What an item is worth, and what it was worth before relevance moved that."""
    if item.essential:
        return "essential"
    if item.priority_before is None:
        return str(item.priority)
    return f"{item.priority_before} → {item.priority}"


def _chosen(context: RequestContext) -> str:
    """What was found for the question, on a line of its own."""
    found: list[ContextItem | ContextTool] = [item for item in context.items if item.origin]
    found += [tool for tool in context.tools if tool.origin]
    named = ", ".join(f"{each.item} ({describe_inclusion(each)})" for each in found)
    return f"\nchosen: {named}" if named else ""


def render_message(message: Message) -> str:
    """A message's text, with what it calls, answers and brings."""
    said: list[str] = []
    for block in message.blocks:
        match block:
            case Text(text=text) if text.strip():
                said.append(text.strip())
            case Thinking(text=text) if text.strip():
                said.append(f"(thinks: {text.strip()})")
            case ToolCall(name=name, arguments=arguments):
                said.append(f"calls {name} {arguments}")
            case ToolResult(name=name, text=text, is_error=failed):
                said.append(f"{name}{' failed' if failed else ''}: {text.strip()}")
            case _:
                pass
    uses = message.context.uses if message.context else ()
    if uses:
        said.append("[" + ", ".join(f"{use.item} {use.form}" for use in uses) + "]")
    return "\n".join(said)


def _gone(gone: DroppedHistory, full: bool) -> str:
    moment = datetime.fromtimestamp(gone.at).strftime("%Y-%m-%d %H:%M:%S")
    lines = [
        f"## {gone.entry} · {moment} · {gone.reason} (by {gone.by})",
        "",
        f"{len(gone.messages)} message{'s' * (len(gone.messages) != 1)} gave way to:",
        "",
        *(f"> {line}" for line in (gone.summary or "(nothing)").splitlines()),
        "",
    ]
    for message in gone.messages:
        first, *rest = render_message(message).splitlines() or [""]
        if not full:
            rest = []
            first = first if len(first) <= WIDTH else f"{first[: WIDTH - 1]}…"
        lines.append(f"- {message.role} {message.id}: {first}")
        lines += [f"  {line}" for line in rest]
    return "\n".join([*lines, ""])
