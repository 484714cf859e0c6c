"""The snapshot of a session that was written in one go: an import or a repaired copy."""

from contextlib import suppress

from lamina.adapters.providers.model_book import load_book
from lamina.apps.wiring.sessions import SystemClock
from lamina.core.ports import JournalStore
from lamina.engine.record.layouts import Layouts
from lamina.engine.record.record import Record
from lamina.errors import UnknownTarget


async def keep_snapshot(store: JournalStore, session: str) -> None:
    """Write a snapshot, so that the first opening replays nothing and the first question does not
    count the history."""
    record = Record(await store.open(session), SystemClock())
    try:
        state, layouts = record.state, Layouts(load_book(), record)
        with suppress(UnknownTarget):
            target = layouts.choose(None, state.settings)
            assembler = layouts.assembler_for(target, state.settings.promotion)
            cached = state.envelope.cached
            assembler.assemble(state.envelope, state.library.items, len(cached))
        await layouts.keep_snapshot(least=0, is_new=True)
    finally:
        await record.close()
