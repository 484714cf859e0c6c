"""Stores a session's tool results without secrets, in full if they were cut, and reads them back by
handle.

Laws: a tool's result is stored at once, so that the tool is not run again. Secrets are detected in
the whole result, whatever part is sent or requested. The part that is cut off is on disk before the
entry that names it; a model that can read it is told how. Only results shortened on this path can
be read, even if a summary has replaced them. An error in a call to read becomes the call's result.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import anyio
import msgspec
from msgspec.structs import replace

from lamina.core.assembly.shortened_results import (
    ReadArguments,
    can_read_results,
    digits_of,
    make_handle,
    page_tokens,
    say_how_to_read,
)
from lamina.core.audit.kept_results import find_result
from lamina.core.codec import digest_bytes, mend_text
from lamina.core.journal import State, results_of
from lamina.core.ports import JournalStore
from lamina.core.text.excerpt import cut_text
from lamina.core.text.result_pages import PageLimit, ResultPages, is_readable, line_number
from lamina.core.values.entry import Entry, MessageEntry, ResultEntry
from lamina.core.values.message import ToolResult, ToolText
from lamina.core.values.tool import ToolOutput
from lamina.engine.record.layouts import Layouts
from lamina.engine.record.record import Record
from lamina.engine.session.session_ports import Warn
from lamina.engine.session.waiting_calls import require_waiting
from lamina.engine.sources.secret_screen import SecretScreen
from lamina.errors import JournalError, UsageError


class ToolResults:
    """The tool results of one session. Secrets in them cause a warning."""

    def __init__(
        self, record: Record, store: JournalStore, screen: SecretScreen,
        warn: Warn, lock: anyio.Lock,
    ) -> None:  # fmt: skip
        self._record = record
        self._store = store
        self._screen = screen
        self._warn = warn
        self._lock = lock

    async def keep(self, result: ToolResult, whole: str = "") -> ToolResult:
        """Store a tool's result while other calls of its turn wait, and with it the `whole` of a
        text that was cut. Return the result as stored.

        Raises:
            TurnStateError: the call is not waiting.
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
        """Store the full text of a result that is sent shortened; return its digest."""
        return await self._store.put_blob(mend_text(text).encode())

    async def keep_shortened(self, entries: Sequence[Entry], results: Sequence[ToolResult]) -> None:
        """Store the full versions of the results that `entries` contain in shortened form."""
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
        """Return the full stored result, by its call's id or a digest.

        Raises:
            UsageError: there is no such result.
            JournalError: the part that was cut off no longer exists.
        """
        result = find_result(self._record.entries.values(), what)
        if not result.digest:
            return result.text
        return (await self._store.get_blob(result.digest)).decode()

    def screen_cut(self, name: str, text: str, whole: str) -> tuple[str, str]:
        """Return the result of the tool `name` without its secrets: a text, and the `whole` of a
        cut one.
        """
        state = self._record.state
        if whole:
            # A cut can split a secret in two.
            safe = self._screen_text(name, whole, state)
            if safe != whole:
                text = cut_text(safe, len(text))
                whole = safe if text != safe else ""
        return self._screen_text(name, text, state), whole

    def _screen_text(self, name: str, text: str, state: State) -> str:
        return self.screen(ToolResult(call_id="", name=name, text=text), state).text

    def screen(self, result: ToolResult, state: State) -> ToolResult:
        """Return a result without its secrets."""
        result, warnings = self._screen.result(result, state.settings.secrets)
        self._warn(*warnings)
        return result

    def screen_texts(self, texts: Sequence[ToolText], state: State) -> tuple[ToolText, ...]:
        """Return results of planned tools without their secrets."""
        screened = [self._screen.tool_text(text, state.settings.secrets) for text in texts]
        self._warn(*(warning for _, warnings in screened for warning in warnings))
        return tuple(text for text, _ in screened)


def _tell_rest(text: str, whole: str, how_to_read: str) -> str:
    """Return a cut text that explains how to read the rest: in its own note, or in a line behind it
    if it was cut in another way.
    """

    def explain(first: int, last: int) -> str:
        return f"{how_to_read}, lines {line_number(whole, first)}-{line_number(whole, last - 1)}"

    if text == cut_text(whole, len(text)):
        text = cut_text(whole, len(text), explain)
    return text if how_to_read in text else f"{text}\n[… {how_to_read} …]"


# How many handles are listed when a handle is unknown.
_NAMED = 10


class ResultReader:
    """Reads the results of one session."""

    def __init__(
        self, record: Record, store: JournalStore, screen: SecretScreen, layouts: Layouts
    ) -> None:
        self._record = record
        self._store = store
        self._screen = screen
        self._layouts = layouts

    async def answer(self, arguments: str) -> ToolOutput:
        """Return the result of a call with these arguments."""
        try:
            wanted = msgspec.json.decode(arguments or "{}", type=dict[str, Any])
        except msgspec.MsgspecError as error:
            return ToolOutput(text=f"The arguments are not a JSON object: {error}", is_error=True)
        return await self.read(wanted)

    async def read(self, arguments: Mapping[str, Any]) -> ToolOutput:
        """Return the result of a `read_result` call."""
        try:
            wanted = msgspec.convert(arguments, ReadArguments, strict=False)
            return ToolOutput(text=await self._read(wanted))
        except msgspec.ValidationError as error:
            return ToolOutput(text=f"The arguments do not fit the tool: {error}", is_error=True)
        except UsageError as error:
            return ToolOutput(text=str(error), is_error=True)

    async def _read(self, wanted: ReadArguments) -> str:
        state = self._record.state
        digest, result = self._find(wanted.handle)
        text = result.text
        if digest_bytes(text.encode()) != digest:
            text = await self._read_blob(digest)
        text, _ = self._screen.text(text, f"the result of {result.name}", state.settings.secrets)
        if not is_readable(text):
            raise UsageError(f"{make_handle(digest)} is data, not text: it has no lines to read")
        last = state.requests.open or state.requests.sent
        target = self._layouts.choose(last.target if last else None, state.settings)
        assembler = self._layouts.assembler_for(target, state.settings.promotion)
        tokens = page_tokens(self._layouts.room(target, state).limit)
        pages = ResultPages(
            text,
            handle=make_handle(digest),
            title=f"the result of {result.name}",
            limit=PageLimit(tokens=tokens, count=assembler.count_text),
        )
        if wanted.find:
            return pages.find(wanted.find, wanted.lines, wanted.context)
        return pages.read(wanted.lines)

    async def _read_blob(self, digest: str) -> str:
        try:
            return (await self._store.get_blob(digest)).decode()
        except JournalError as error:
            # The store's message contains local paths, which a model does not need.
            raise UsageError(
                f"the rest of {make_handle(digest)} is no longer stored: you have all that is "
                f"left of it. Call the tool again if you need the rest"
            ) from error

    def _find(self, handle: str) -> tuple[str, ToolResult]:
        """Return the digest that a handle refers to, and the result as recorded in the journal.

        Raises:
            UsageError: no result has the handle, or several do.
        """
        digits = digits_of(handle)
        shortened = self._record.state.shortened
        found = {
            digest: place
            for place, digest in shortened.items()
            if digits and digest.startswith(digits)
        }
        if len(found) > 1:
            # Two texts with the same handle: neither is returned for the other.
            names = ", ".join(f"r{digest[:16]}" for digest in found)
            raise UsageError(f"{handle!r} is the handle of several results; say which: {names}")
        for digest, (message, call) in found.items():
            entry = self._record.entries.get(message)
            if isinstance(entry, MessageEntry) and call in (blocks := results_of(entry.message)):
                return digest, blocks[call]
        handles = [make_handle(digest) for digest in dict.fromkeys(shortened.values())][-_NAMED:]
        there = f"the latest are {', '.join(handles)}" if handles else "no result has a handle yet"
        raise UsageError(f"there is no result with the handle {handle[:80]!r}; {there}")
