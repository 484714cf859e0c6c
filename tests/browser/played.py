"""Sessions played before anybody looks: on an emulated vendor, with a clock that is moved."""

from collections.abc import Callable
from pathlib import Path

from msgspec.structs import replace
from tests.browser.browser import run_apart

import lamina
from lamina.apps.wiring.session_importer import import_data
from lamina.apps.wiring.stores import default_store
from lamina.core.journal.lines import write_lines
from lamina.core.values.entry import Entry, RequestEntry
from lamina.core.values.request import MovedPlace
from lamina.core.values.settings import Settings
from lamina.emulators.answers import ScriptedAnswers
from lamina.emulators.cost_report import CostRow
from lamina.emulators.emulator import serve_emulator
from lamina.emulators.openai.cache import OpenAICache
from lamina.emulators.openai.emulator import OpenAIEmulator
from lamina.ops import Patch, SystemPartSet

SYSTEM = " ".join(f"Rule {number}: berth {number} is for ship {number}." for number in range(400))
# Long enough that it costs something to read it again.
ANSWER = " ".join(f"At {hour} o'clock the water is high." for hour in range(50))
TARGET = "openai:gpt-4o"


def play_breaks(vault: Path, session: str, connect: Callable[[str], None]) -> list[CostRow]:
    """A session whose cache breaks in every way there is; gives what the vendor charged for each
    request. `connect` is told the vendor's address, before anything is sent."""
    return run_apart(_play_breaks, vault, session, connect)


async def _play_breaks(vault: Path, session: str, connect: Callable[[str], None]) -> list[CostRow]:
    emulator = OpenAIEmulator(answers=ScriptedAnswers([ANSWER]))
    hooks = lamina.Hooks()
    hours: list[str] = []

    @hooks.context(reason="ephemeral")
    def set_hour(event: object) -> Patch | None:
        part = SystemPartSet(name="hour", text="".join(hours), reason="the hour")
        return Patch(ops=(part,)) if hours else None

    async with serve_emulator(emulator) as url:
        connect(url)
        async with await lamina.open_agent(
            session, workspace=vault, system=SYSTEM, target=TARGET, clock=emulator.clock,
            hooks=hooks, settings=Settings(prefix_check="warn", ask_before_tools="never"),
        ) as agent:  # fmt: skip
            await agent.run("When is low water?")
            emulator.clock.move(20)
            await agent.run("And high water?")
            # A person changes the system prompt and says why.
            emulator.clock.move(20)
            await agent.session.set_system("tone", "Be brief.", reason="a person asked for it")
            await agent.run("Which berth is free?")
            # A hook writes the time into the system prompt of this one request.
            emulator.clock.move(20)
            hours.append("It is noon.")
            await agent.run("Is it day?")
            hours.clear()
            emulator.clock.move(20)
            await agent.run("And now?")
            # Nobody asks for a day.
            emulator.clock.move(86_400)
            await agent.run("And today?")
            # The vendor forgets what it had.
            emulator.clock.move(20)
            emulator.cache = OpenAICache()
            await agent.run("Who pays the dues?")
            # A server on the way that tells no figures.
            emulator.clock.move(20)
            emulator.quirks = frozenset({"no_usage"})
            await agent.run("Where is the pier?")
            emulator.quirks = frozenset()
    await _forget_reasons(vault, session)
    return emulator.report.rows


async def _forget_reasons(vault: Path, session: str) -> None:
    """As if the hook had said nothing: Lamina itself lets no bytes move without a reason, so the
    session is rewritten with one that was not kept."""
    store = default_store(vault)
    entries: list[Entry] = [
        _without_reason(entry) if isinstance(entry, RequestEntry) else entry
        for entry in (await store.read(session)).entries.values()
    ]
    await store.delete(session)
    await import_data(
        write_lines(entries, 0), name=f"{session}.jsonl", session=session, workspace=vault
    )


def _without_reason(entry: RequestEntry) -> RequestEntry:
    agreement = entry.context.agreement
    broke = agreement.broke
    if broke is None or not broke.reason.startswith("the hour"):
        return entry
    place = MovedPlace(layer=broke.layer, segment=broke.segment, source=broke.source)
    agreement = replace(agreement, broke=replace(broke, reason=""), unexplained=(place,))
    return replace(entry, context=replace(entry.context, agreement=agreement))
