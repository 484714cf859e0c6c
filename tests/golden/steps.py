"""What a person does between questions: edits, pins, settings, branches, other openings."""

from collections.abc import Awaitable, Callable
from typing import Any

from tests.golden.patches import PARTS, draw_op
from tests.golden.talk import Talk, draw_options
from tests.golden.world import DEFINITIONS, GUIDES, PATHS

import lamina
from lamina.core.values.entry import MessageEntry, RequestEntry
from lamina.core.values.patch import Display

CHANGES: tuple[dict[str, Any], ...] = (
    {"promotion": "eager"}, {"promotion": "lazy"}, {"window": 600}, {"window": 2_000},
    {"attachment_limit": 100}, {"history_tokens": 150}, {"history_messages": 3},
    {"history": "strip", "strip_after_turns": 2}, {"prefix_check": "warn"}, {"cache_ttl": "1h"},
    {"compaction_keep": 60}, {"secrets": "off"}, {"relevance_priority": True}, {"embed_depth": 0},
    {"heat": 1}, {"prune_to": 7}, {"target": "nobody:x"},
)  # fmt: skip
MEMBERS = (*(guide.id for guide in GUIDES), "ref:nothing", "tool:fake/find")


class Steps:
    """Everything but asking, each step by its weight."""

    def __init__(self, talk: Talk) -> None:
        self.talk = talk
        self.draw = talk.draw
        self._steps: list[Callable[[], Awaitable[object]]] = []
        weighted: list[tuple[int, Callable[[], Awaitable[object]]]] = [
            (4, self.edit), (2, self.delete), (3, self.pin), (1, self.unpin), (2, self.forget),
            (2, self.lay), (2, self.refresh), (2, self.consolidate), (3, self.set_system),
            (3, self.set_tools), (4, self.apply), (4, self.change), (3, self.retarget),
            (4, self.navigate), (1, self.mark), (1, self.fork), (2, self.compact), (3, self.reopen),
            (3, self.reopen_otherwise), (2, self.join), (2, self.leave), (2, self.remember),
            (1, self.change_guides), (2, self.wait),
        ]  # fmt: skip
        for weight, step in weighted:
            self._steps += [step] * weight

    async def take(self) -> None:
        await self.talk.attempt(self.draw.pick(self._steps))

    # -- the desk ----------------------------------------------------------------------------------

    async def edit(self) -> None:
        self.talk.world.desk.edit(self.draw.pick(PATHS))

    async def delete(self) -> None:
        self.talk.world.desk.notes.pop(self.draw.pick(PATHS), None)

    async def remember(self) -> None:
        self.talk.world.memory.text = self.draw.pick(
            ("", "They moved.", "They sail at night.", None)
        )

    async def change_guides(self) -> None:
        self.talk.world.guides.listed = self.draw.some(GUIDES, len(GUIDES))

    async def wait(self) -> None:
        self.talk.world.clock.pass_by(self.draw.pick((100.0, 1_000.0, 90_000.0)))

    # -- what stays --------------------------------------------------------------------------------

    async def pin(self) -> object:
        return await self.talk.session.pin(self.draw.pick(("a.md", "b.md", "c.md", "gone.md")))

    async def unpin(self) -> object:
        return await self.talk.session.unpin(self.draw.pick(("a.md", "b.md", "c.md")))

    async def forget(self) -> object:
        return await self.talk.session.forget(self.draw.pick(PATHS))

    async def lay(self) -> object:
        return await self.talk.session.preload(self.draw.some(PATHS, 2))

    async def refresh(self) -> None:
        found = await self.talk.session.find_changes()
        changed = await self.talk.session.refresh()
        self.talk.tape.outcome(len(found), len(changed))

    async def consolidate(self) -> object:
        return await self.talk.session.rebuild_library(self.draw.pick(("tidy up", "tidy up", " ")))

    async def join(self) -> object:
        return await self.talk.session.add(self.draw.pick(MEMBERS))

    async def leave(self) -> object:
        return await self.talk.session.remove(self.draw.pick(MEMBERS))

    # -- what the prefix is made of ----------------------------------------------------------------

    async def set_system(self) -> None:
        name, text = self.draw.pick(PARTS), self.draw.words(8)
        await self.talk.session.set_system(name, text, reason=self.draw.pick(("so", "so", "")))

    async def set_tools(self) -> None:
        tools = self.draw.some(DEFINITIONS, 3)
        await self.talk.session.set_tools(tools, reason="other tools")

    async def apply(self) -> None:
        session = self.talk.session
        ops = [
            draw_op(self.draw, session.envelope, self.talk.items())
            for _ in range(self.draw.pick((1, 1, 2)))
        ]
        display = Display(title="By hand") if self.draw.chance(0.3) else None
        await session.apply("golden.apply", *ops, display=display)

    async def change(self) -> object:
        return await self.talk.session.update_settings(**self.draw.pick(CHANGES))

    async def retarget(self) -> object:
        return await self.talk.session.update_settings(
            target=self.draw.pick(self.talk.targets).name
        )

    async def compact(self) -> None:
        compacted = await self.talk.session.compact()
        self.talk.tape.outcome(compacted.changed, compacted.by, compacted.messages)

    # -- the tree ----------------------------------------------------------------------------------

    async def navigate(self) -> None:
        session = self.talk.session
        kinds = (MessageEntry, RequestEntry)
        places = [entry.id for entry in session.entries if isinstance(entry, kinds)]
        if self.draw.chance(0.2):
            places = [entry.id for entry in session.entries]
        if places:
            summary = self.draw.pick(("", "", "It led nowhere."))
            await session.navigate(self.draw.pick(places), summary=summary)

    async def mark(self) -> None:
        session = self.talk.session
        await session.label(self.draw.pick(session.entries).id, self.draw.pick(("here", "")))
        await session.rename(self.draw.pick(("Ferries", " Tides ")))
        await session.add_custom_entry("app.score", {"n": [1, 2.5, None, "{"]})

    async def fork(self) -> None:
        """Goes on in a copy; the session it was made of stays as it is."""
        talk = self.talk
        talk.tape.outcome(len(talk.session.compactions))
        if self.draw.chance(0.5):
            at = self.draw.pick(talk.session.path).id if self.draw.chance(0.5) else None
            copy = await talk.session.fork(at=at)
        else:
            copy = await talk.session.save_as()
        await talk.session.close()
        talk.session, talk.name = copy, copy.id

    async def reopen(self) -> None:
        await self.talk.session.close()
        await self.talk.open()

    async def reopen_otherwise(self) -> None:
        """Another version of the application opens the session."""
        others: tuple[dict[str, Any], ...] = (
            {"system": "You are a pilot."},
            {"tools": self.draw.some(DEFINITIONS, 3)},
            {"options": draw_options(self.draw)},
            {
                "always": [self.talk.world.item("a.md")]
                if "a.md" in self.talk.world.desk.notes
                else []
            },
            {"target": self.draw.pick(self.talk.targets).name},
            {"settings": lamina.Settings(window=1_000, target=self.talk.target.name)},
        )
        await self.talk.session.close()
        await self.talk.open(**self.draw.pick(others))
