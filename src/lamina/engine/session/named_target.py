"""Who was named for a turn that was left in the middle.

Law: what a person names last is who is asked; a change of other settings names nobody.
"""

from lamina.core.values.entry import ModelEntry, OpeningEntry, RequestEntry, SettingsEntry
from lamina.engine.record.branch import page_beside
from lamina.engine.record.record import Record
from lamina.engine.session.turn import Turn
from lamina.engine.session.turn_lifecycle import TurnLifecycle


async def take_up(turns: TurnLifecycle, record: Record, target: str | None) -> Turn | None:
    """The turn that was left in the middle, for `target` or whoever was named since."""
    turn = await turns.current()
    name = turn and (target or named_since(record, turn.entry))
    if turn is None or not name or name == turn.target:
        if turn is not None and turn.message is None and not turns.spending.is_reserved(turn.id):
            # It may have been sent already, and be charged for: that stays reserved, too.
            await turns.spending.reserve_again(turn.entry, turn.prompt)
        return turn
    chosen = turns.layouts.choose(name, record.state.settings)
    if turn.message is not None:
        return turn.with_target(chosen.name)
    async with turns.lock:
        # The request was never answered: it is left as a branch, and made anew.
        record.require_open(turn.entry)
        page = page_beside(record, turns.layouts, turn.entry)
        texts = record.state.envelope.tool_texts
        return await turns.ask_again(page, turn.entry, chosen, turn.attachments, texts)


def named_since(record: Record, request: RequestEntry) -> str | None:
    """The target that was named for the session after `request`, which is on its path."""
    target = record.state.settings.target
    entries = record.since(request.id)
    if any(isinstance(entry, OpeningEntry) and "target" in entry.given for entry in entries):
        return target
    if not any(isinstance(entry, SettingsEntry | ModelEntry) for entry in entries):
        return None
    before = record.state_at(request.id).settings.target
    return target if target != before else None
