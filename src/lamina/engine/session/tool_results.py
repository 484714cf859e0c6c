"""What tools gave: without secrets, and whole where it was cut.

Laws: what a tool gave is written down at once, so that it is not run again. Secrets are judged in
the whole of it. What is cut off is on disk before the entry that names it; a model that can read it
is told how.
"""

from collections.abc import Sequence

import anyio
from msgspec.structs import replace

from lamina.core.assembly.read_result import can_read_results, say_how_to_read
from lamina.core.audit.kept_results import find_result
from lamina.core.codec import digest_bytes, mend_text
from lamina.core.journal import State
from lamina.core.ports import JournalStore
from lamina.core.text.excerpt import cut_text
from lamina.core.text.numbered_lines import line_number
from lamina.core.values.entry import Entry, MessageEntry, ResultEntry
from lamina.core.values.message import ToolResult, ToolText
from lamina.engine.record.record import Record
from lamina.engine.session.calls import require_waiting
from lamina.engine.sources.secrets import SecretScreen


class ToolResults:
    """The results of one session. What a person should know of them is added to `news`."""

    def __init__(
        self, record: Record, store: JournalStore, screen: SecretScreen, news: list[str],
        lock: anyio.Lock,
    ) -> None:  # fmt: skip
        self._record = record
        self._store = store
        self._screen = screen
        self._news = news
        self._lock = lock

    async def keep(self, result: ToolResult, whole: str = "") -> ToolResult:
        """Keeps what a tool gave while other calls of its turn wait, and beside it the `whole` of a
        text that was cut. Gives it as it is kept.

        Raises:
            TurnStateError: no such call waits.
        """
        async with self._lock:
            require_waiting(self._record, result.call_id)
            text, whole = self.screen_cut(result.name, result.text, whole)
            digest = await self.keep_whole(whole) if whole else ""
            if digest and can_read_results(self._record.state):
                text = _tell_rest(text, whole, say_how_to_read(digest))
            result = replace(result, name=mend_text(result.name), text=mend_text(text))
            await self._record.write(ResultEntry, result=result, whole=digest)
            return result

    async def keep_whole(self, text: str) -> str:
        """Keeps all of a text that is sent shortened; its digest."""
        return await self._store.put_blob(mend_text(text).encode())

    async def keep_shortened(self, entries: Sequence[Entry], results: Sequence[ToolResult]) -> None:
        """Keeps the results whole that `entries` hold shortened."""
        named = {
            digest
            for entry in entries
            if isinstance(entry, MessageEntry)
            for digest in entry.whole_results.values()
        }
        for data in [result.text.encode() for result in results] if named else []:
            if digest_bytes(data) in named:
                await self._store.put_blob(data)

    async def read(self, what: str) -> str:
        """All of a result that is kept, by its call's id or a digest.

        Raises:
            UsageError: there is none.
            JournalError: what was cut off it is not there any more.
        """
        result = find_result(self._record.entries.values(), what)
        if not result.digest:
            return result.text
        return (await self._store.get_blob(result.digest)).decode()

    def screen_cut(self, name: str, text: str, whole: str) -> tuple[str, str]:
        """What the tool `name` gave, without its secrets: a text, and the `whole` of a cut one."""
        state = self._record.state
        if whole:
            # A secret may be cut in two.
            safe = self._screen_text(name, whole, state)
            if safe != whole:
                text = cut_text(safe, len(text))
                whole = safe if text != safe else ""
        return self._screen_text(name, text, state), whole

    def _screen_text(self, name: str, text: str, state: State) -> str:
        return self.screen(ToolResult(call_id="", name=name, text=text), state).text

    def screen(self, result: ToolResult, state: State) -> ToolResult:
        """A result without its secrets."""
        result, warnings = self._screen.result(result, state.settings.secrets)
        self._news += warnings
        return result

    def screen_texts(self, texts: Sequence[ToolText], state: State) -> tuple[ToolText, ...]:
        """Results of planned tools without their secrets."""
        screened = [self._screen.tool_text(text, state.settings.secrets) for text in texts]
        self._news += [warning for _, warnings in screened for warning in warnings]
        return tuple(text for text, _ in screened)


def _tell_rest(text: str, whole: str, how_to_read: str) -> str:
    """A cut text that says how to read the rest: in its own note, or in a line behind it if it was
    cut in another way."""

    def tell(first: int, last: int) -> str:
        return f"{how_to_read}, lines {line_number(whole, first)}-{line_number(whole, last - 1)}"

    if text == cut_text(whole, len(text)):
        text = cut_text(whole, len(text), tell)
    return text if how_to_read in text else f"{text}\n[… {how_to_read} …]"
