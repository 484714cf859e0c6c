"""Results that were cut or shortened, read back by a model through their handles.

Laws: only what was shortened on this path can be read, also if it gave way to a summary. Secrets
are judged in all of it, whatever part is asked for, by the settings of now. What is wrong with a
call is its result.
"""

from collections.abc import Mapping
from typing import Any

import msgspec

from lamina.core.assembly.read_result import ReadArguments, digits_of, make_handle, page_tokens
from lamina.core.codec import digest_bytes
from lamina.core.journal import results_of
from lamina.core.ports import JournalStore
from lamina.core.text.result_pages import PageLimit, ResultPages, is_readable
from lamina.core.values.entry import MessageEntry
from lamina.core.values.message import ToolResult
from lamina.core.values.tool import ToolOutput
from lamina.engine.record.layouts import Layouts
from lamina.engine.record.record import Record
from lamina.engine.sources.secrets import SecretScreen
from lamina.errors import JournalError, UsageError

# How many handles are named where one is not known.
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
        """What a call with these arguments gives."""
        try:
            wanted = msgspec.json.decode(arguments or "{}", type=dict[str, Any])
        except msgspec.MsgspecError as error:
            return ToolOutput(text=f"The arguments are no JSON object: {error}", is_error=True)
        return await self.read(wanted)

    async def read(self, arguments: Mapping[str, Any]) -> ToolOutput:
        """What a call of `read_result` gives."""
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
            raise UsageError(f"{make_handle(digest)} is no text but data: it has no lines to read")
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
            # What the store says of it names places on this machine, which no model needs.
            raise UsageError(
                f"what {make_handle(digest)} stands for is no longer kept: there is no more of it "
                f"than what was sent. Call the tool again if you need the rest"
            ) from error

    def _find(self, handle: str) -> tuple[str, ToolResult]:
        """The digest that a handle is for, and the result as it stands in the journal.

        Raises:
            UsageError: there is none, or there are several.
        """
        digits = digits_of(handle)
        shortened = self._record.state.shortened
        found = {
            digest: place
            for place, digest in shortened.items()
            if digits and digest.startswith(digits)
        }
        if len(found) > 1:
            # Two texts that begin alike: neither is given for the other.
            names = ", ".join(f"r{digest[:16]}" for digest in found)
            raise UsageError(f"{handle!r} is the handle of several results; say which: {names}")
        for digest, (message, call) in found.items():
            entry = self._record.entries.get(message)
            if isinstance(entry, MessageEntry) and call in (blocks := results_of(entry.message)):
                return digest, blocks[call]
        handles = [make_handle(digest) for digest in dict.fromkeys(shortened.values())][-_NAMED:]
        there = f"the latest are {', '.join(handles)}" if handles else "no result has one so far"
        raise UsageError(f"there is no result with the handle {handle[:80]!r}; {there}")
