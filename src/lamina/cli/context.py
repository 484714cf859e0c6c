"""`lamina context`: a prepared turn for people and for machines."""

from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct
from msgspec.structs import asdict

from lamina.cli.log import how_included, worth_of
from lamina.cli.script import (
    EditedWorkspace,
    ScriptClock,
    ScriptTurn,
    read_script,
    scripted_reply,
)
from lamina.engine.session import Session
from lamina.engine.turn import Turn
from lamina.errors import UsageError
from lamina.stores.memory import MemoryStore
from lamina.values.entry import TransformEntry
from lamina.values.item import Wanted, key_of
from lamina.values.prompt import Segment
from lamina.values.request import ContextItem
from lamina.values.settings import Settings
from lamina.wiring import open_session
from lamina.workspace.folder import FolderWorkspace

SHOWN = 600


class Request(Struct, frozen=True, kw_only=True):
    question: str | None
    workspace: Path
    attach: tuple[str, ...]
    essential: tuple[str, ...]
    system: str
    target: str | None
    settings: Settings
    script: Path | None
    agent: str | None = None
    project: str | None = None
    active: str | None = None


async def show_context(request: Request, as_json: bool, wire: bool, full: bool) -> str:
    """The text that the command prints."""
    session, turn = await _prepare(request)
    if wire:
        return msgspec.json.format(msgspec.json.encode(turn.request()), indent=2).decode()
    if as_json:
        return msgspec.json.format(msgspec.json.encode(describe(turn)), indent=2).decode()
    return render(session, turn, full=full)


async def _prepare(request: Request) -> tuple[Session, Turn]:
    clock = ScriptClock()
    turns: list[ScriptTurn] = []
    system = request.system
    if request.script:
        script = read_script(request.script)
        turns = list(script.turns)
        system = system or script.system
    open_note = [Wanted(what=request.active, shape="active")] if request.active else []
    attach: list[str | Wanted] = [*open_note, *request.attach]
    attach += [Wanted(what=path, essential=True) for path in request.essential]
    workspace = EditedWorkspace(FolderWorkspace(request.workspace))
    session = await open_session(
        system=system, target=request.target, workspace=workspace,
        settings=None if request.agent else request.settings, clock=clock, store=MemoryStore(),
        agent=_agent_place(request), project=request.project,
    )  # fmt: skip
    if request.agent:
        # The agent's settings hold, but for what was said here.
        await session.change(**_said(request.settings))
    last = turns.pop() if request.question is None else None
    for each in turns:
        clock.time += each.pause
        workspace.edit(each.edit)
        turn = await session.prepare(each.ask, attach=each.attach)
        await turn.commit(scripted_reply(each.answer))
    if last is not None:
        clock.time += last.pause
        workspace.edit(last.edit)
        return session, await session.prepare(last.ask, attach=[*last.attach, *attach])
    if request.question is None:
        raise UsageError("no question was given")
    clock.time += 30.0
    return session, await session.prepare(request.question, attach=attach)


def _agent_place(request: Request) -> Path | None:
    if request.agent is None:
        if request.project is not None:
            raise UsageError(f"--project {request.project!r} needs --agent")
        return None
    from lamina.wiring.agents import find_agent

    return find_agent(request.agent, request.workspace)


def _said(settings: Settings) -> dict[str, Any]:
    return {
        each.name: value
        for each in msgspec.structs.fields(settings)
        if (value := getattr(settings, each.name)) != each.default
    }


def describe(turn: Turn) -> dict[str, Any]:
    """The turn as plain data."""
    context = msgspec.to_builtins(turn.context)
    return {
        "target": turn.context.target,
        "layers": [asdict(size) for size in turn.layers],
        "context": context,
        "segments": [
            {
                "layer": segment.layer,
                "role": segment.role,
                "source": segment.source,
                "tokens": segment.tokens,
                "cached": segment.cached,
                "digest": segment.digest,
                "content": msgspec.to_builtins(segment.content),
            }
            for segment in turn.prompt
        ],
    }


def render(session: Session, turn: Turn, *, full: bool) -> str:
    """The turn as Markdown."""
    context, fit = turn.context, turn.context.fit
    lines = [
        f"# Request to {context.target}",
        "",
        f"{fit.tokens:,} of {fit.window - fit.reserve:,} tokens "
        f"(window {fit.window:,}, {fit.reserve:,} kept for the answer)",
        "",
        "| layer | tokens | segments | digest |",
        "|---|--:|--:|---|",
    ]
    lines += [
        f"| {size.layer} | {size.tokens:,} | {size.segments} | `{size.digest[:8]}` |"
        for size in turn.layers
        if size.segments
    ]
    lines += ["", *_agreement(turn)]
    lines += _table(
        "Items",
        ("item", "stands in", "tokens", "priority", "included", "why"),
        [_item_row(item) for item in context.items],
    )
    lines += _table(
        "Tools",
        ("tool", "tokens", "included"),
        [(key_of(tool.item), f"{tool.tokens:,}", how_included(tool)) for tool in context.tools],
    )
    lines += _table(
        "Left out",
        ("what", "reason", "detail"),
        [(each.what, each.reason, each.detail) for each in context.left_out],
    )
    for warning in context.warnings:
        lines += [f"> warning: {warning}", ""]
    lines += _patches(session)
    lines += ["## Envelope", ""]
    for segment in turn.prompt:
        lines += _segment(segment, full)
    return "\n".join(lines).rstrip() + "\n"


def _item_row(item: ContextItem) -> tuple[str, ...]:
    return (
        item.label,
        item.placement,
        f"{item.tokens:,}",
        worth_of(item),
        how_included(item),
        item.reason,
    )


def _agreement(turn: Turn) -> list[str]:
    agreement = turn.context.agreement
    lines = [f"Boundary: {boundary.reason}." for boundary in turn.context.boundaries]
    if not agreement.first:
        lines.append(
            f"{agreement.tokens:,} tokens agree with the request before; "
            f"{agreement.reprocessed:,} are new to the provider."
        )
    if agreement.broke:
        broke = agreement.broke
        lines.append(f"The prefix moves at {broke.source} ({broke.layer}): {broke.reason}.")
    return [*lines, ""] if lines else []


def _table(title: str, head: tuple[str, ...], rows: list[tuple[str, ...]]) -> list[str]:
    if not rows:
        return []
    lines = [f"## {title}", "", f"| {' | '.join(head)} |", "|" + "---|" * len(head)]
    lines += [f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in row)} |" for row in rows]
    return [*lines, ""]


def _patches(session: Session) -> list[str]:
    shown = []
    for entry in session.entries:
        if isinstance(entry, TransformEntry) and entry.patch.display:
            display = entry.patch.display
            shown += [
                f"### {display.title}",
                "",
                f"by `{entry.transformer}` at entry {entry.id}",
                "",
            ]
            if display.summary:
                shown += [display.summary, ""]
            if display.markdown:
                shown += [display.markdown, ""]
    return ["## Patches", "", *shown] if shown else []


def _segment(segment: Segment, full: bool) -> list[str]:
    kept = "" if segment.cached else ", uncached"
    text = segment.text or msgspec.json.encode(segment.content).decode()
    if not full and len(text) > SHOWN:
        gap = f"\n[... {len(text) - SHOWN:,} characters; --full shows them ...]\n"
        text = text[: SHOWN // 2] + gap + text[-SHOWN // 2 :]
    # A fence longer than any in the text cannot be closed by it.
    fence = "`" * max(3, _longest_run(text) + 1)
    return [
        f"### {segment.layer} · {segment.role} · {segment.source}",
        "",
        f"{segment.tokens:,} tokens{kept}",
        "",
        fence,
        text.strip("\n"),
        fence,
        "",
    ]


def _longest_run(text: str) -> int:
    longest = run = 0
    for char in text:
        run = run + 1 if char == "`" else 0
        longest = max(longest, run)
    return longest
