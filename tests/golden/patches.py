"""Patches of every op, drawn for a session as it stands; and hooks that return them."""

from collections.abc import Callable
from typing import Any

from msgspec.structs import replace
from tests.golden.draw import Draw
from tests.golden.world import DEFINITIONS

from lamina.core.values.entry import ItemEntry
from lamina.core.values.envelope import Envelope, LaidItem, SystemPart
from lamina.core.values.message import Message, Text, ToolResult
from lamina.core.values.patch import (
    CompactionApply,
    Display,
    ItemLay,
    ItemSupersede,
    LibraryConsolidate,
    MessagesCachedReplace,
    MessagesUncachedAppend,
    OptionsSet,
    Patch,
    PatchOp,
    ResultsReplace,
    SystemPartRemove,
    SystemPartSet,
    SystemPartsReplace,
    ToolsRemove,
    ToolsReplace,
)
from lamina.engine.sources.hooks import ContextEvent, Drop, HookReason, Hooks, MessageEvent

PARTS = ("persona", "policy", "mood")


def said(text: str, role: Any = "user") -> Message:
    return Message(role=role, blocks=(Text(text),))


def draw_op(draw: Draw, envelope: Envelope, items: list[ItemEntry]) -> PatchOp | dict[str, Any]:
    """An op that may fit the envelope; some do not, and are refused."""
    reason = draw.pick(("a change of mind", "the plan changed", " spaced ", ""))
    if reason and draw.chance(0.5):
        reason = "because"
    name = draw.pick(PARTS)
    history = envelope.cached.since(0)
    item = draw.pick(items).item if items else None
    makers: list[Callable[[], PatchOp | dict[str, Any]]] = [
        lambda: SystemPartSet(name=name, text=draw.words(6), reason=reason),
        lambda: SystemPartRemove(name=name, reason=reason),
        lambda: SystemPartsReplace(
            parts=tuple(SystemPart(name=each, text=draw.words(4)) for each in PARTS[:2]),
            reason=reason,
        ),
        lambda: ToolsReplace(tools=tuple(draw.some(DEFINITIONS, 3)), reason=reason),
        lambda: ToolsRemove(names=(draw.pick(("find", "look", "absent")),), reason=reason),
        lambda: MessagesCachedReplace(messages=_replaced(draw, history), reason=reason),
        lambda: CompactionApply(
            first_kept=draw.number(-1, len(history) + 1),
            after=draw.pick((0, 0, 1, 2)),
            summary=draw.pick(("", "They spoke of ferries.")),
            reason=reason,
        ),
        lambda: OptionsSet(
            temperature=draw.pick((None, 0.0, 0.5)),
            top_p=draw.pick((None, 0.9)),
            max_tokens=draw.pick((None, 200)),
            reasoning=draw.pick((None, "low")),
        ),
        lambda: {"op": "system_part_set", "name": name, "text": "plain data",
                 "invalidate_cache_reason": reason, "scope": "cached"},
        lambda: {"op": "no_such_op", "name": name},
    ]  # fmt: skip
    results = [m for m in history if any(isinstance(b, ToolResult) for b in m.blocks)]
    if results:
        makers.append(lambda: _shorter(draw, results, reason))
    if item is not None:
        makers += [
            lambda: ItemLay(item=item.id, version=item.version),
            lambda: ItemSupersede(item=item.id, version=item.version),
            lambda: LibraryConsolidate(
                items=(LaidItem(item=item.id, version=item.version),), reason=reason
            ),
        ]
    return draw.pick(makers)()


def _replaced(draw: Draw, history: tuple[Message, ...]) -> tuple[Message, ...]:
    kept = history[draw.number(0, len(history)) :]
    return (said("What was said before is gone."), said("I see.", "assistant"), *kept)


def _shorter(draw: Draw, messages: list[Message], reason: str) -> ResultsReplace:
    message = draw.pick(messages)
    results = [block for block in message.blocks if isinstance(block, ToolResult)]
    shortened = tuple(replace(result, text="shortened") for result in results)
    return ResultsReplace(message=message.id, results=shortened, reason=reason)


def draw_hooks(draw: Draw, items: Callable[[], list[ItemEntry]]) -> Hooks | None:
    """Hooks of all kinds, or none. They have names of their own: those that they would get are
    names of modules."""
    if draw.chance(0.5):
        return None
    hooks = Hooks()
    reasons: tuple[HookReason, ...] = ("before_agent_start", "before_request", "turn_end")
    for reason in reasons:
        if draw.chance(0.5):
            _add_context(hooks, draw, reason, items)
    if draw.chance(0.5):
        _add_ephemeral(hooks, draw)
    if draw.chance(0.5):
        _add_message(hooks, draw)
    return hooks


def _add_context(
    hooks: Hooks, draw: Draw, reason: HookReason, items: Callable[[], list[ItemEntry]]
) -> None:
    share = draw.pick((0.1, 0.3))

    async def change(event: ContextEvent) -> Any:
        if not draw.chance(share):
            return None
        op = draw_op(draw, event.envelope, items())
        if isinstance(op, dict):
            return [op]
        display = Display(title="Changed", summary="by a hook", markdown="**now**")
        odd = ("text", [3], Patch) if draw.chance(0.1) else ()
        return draw.pick((op, [op], Patch(ops=(op,), display=display), (), *odd))

    hooks.context(reason=reason, name=f"golden.{reason}")(change)


def _add_ephemeral(hooks: Hooks, draw: Draw) -> None:
    @hooks.context(reason="ephemeral", name="golden.ephemeral")
    async def remind(event: ContextEvent) -> Any:
        choice = draw.number(0, 11)
        messages = (said(f"It is {draw.words(3)}"),)
        if choice < 5:
            return MessagesUncachedAppend(messages=messages)
        if choice < 7:
            display = Display(title="Reminded")
            return Patch(ops=(MessagesUncachedAppend(messages=messages),), display=display)
        if choice == 7:
            return SystemPartSet(name="mood", text="not here")
        if choice == 8:
            raise ValueError("the hook is broken")
        return None

    @hooks.context(reason="ephemeral", name="golden.plain")
    def mutter(event: ContextEvent) -> Any:
        if len(event.target) % 2:
            yield MessagesUncachedAppend(messages=(said("Hm."),))


def _add_message(hooks: Hooks, draw: Draw) -> None:
    @hooks.message(name="golden.message")
    async def rewrite(event: MessageEvent) -> Any:
        choice = draw.number(0, 15)
        message = event.message
        if choice < 4 and message.role != "tool":
            blocks = tuple(
                Text(f"{block.text} (edited)") if isinstance(block, Text) else block
                for block in message.blocks
            )
            return replace(message, blocks=blocks)
        if choice < 6 and message.role == "tool":
            blocks = tuple(
                replace(block, text=f"{block.text}!") if isinstance(block, ToolResult) else block
                for block in message.blocks
            )
            return replace(message, blocks=blocks)
        if choice == 6:
            return Drop()
        if choice == 7:
            raise ValueError("the hook is broken")
        if choice == 8:
            return "not a message"
        if choice == 9:
            return replace(message, role="user", blocks=())
        return None
