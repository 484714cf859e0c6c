"""Requests as encoders take them: the prompt, what the journal decides besides it, and pictures."""

from collections.abc import Mapping
from contextlib import suppress

from msgspec.structs import replace

from lamina.core.assembly.wire_parameters import recorded_parameters
from lamina.core.audit.rebuilt_request import pictures_in
from lamina.core.journal import State
from lamina.core.ports import JournalStore
from lamina.core.values.entry import RequestEntry
from lamina.core.values.prompt import Prompt
from lamina.core.values.settings import Target
from lamina.core.values.wire import WireRequest
from lamina.engine.record.record import Record
from lamina.errors import JournalError


class WireRequests:
    """Those of one session."""

    def __init__(self, record: Record, store: JournalStore) -> None:
        self._record = record
        self._store = store

    async def make(
        self, request: RequestEntry, prompt: Prompt, target: Target, state: State | None = None
    ) -> WireRequest:
        """`state` is that behind the request; without one, it was written last."""
        state = state or self._record.state
        await self._record.read_ahead()
        base = self._record.entries.get(request.base or "")
        parameters = recorded_parameters(request, state, target, base)
        pictures = await self.pictures(prompt, state)
        wire_request = parameters.wire_request(prompt, target, pictures)
        if not state.pictured:
            return wire_request
        missing = tuple(digest for digest in pictures_in(prompt) if digest not in pictures)
        return replace(wire_request, missing_pictures=missing)

    async def pictures(self, prompt: Prompt, state: State | None = None) -> Mapping[str, bytes]:
        """The pictures of a prompt, by digest, as far as they are there: the others are told to be
        missing, to the model and in `Turn.warnings`."""
        if not (state or self._record.state).pictured:
            return {}
        pictures: dict[str, bytes] = {}
        for digest in pictures_in(prompt):
            with suppress(JournalError):
                pictures[digest] = await self._store.get_blob(digest)
        return pictures
