"""Requests as encoders take them: the prompt, what the journal decides besides it, and pictures."""

from collections.abc import Mapping

from lamina.assembly.wire_parameters import recorded_parameters
from lamina.audit.rebuilt_request import pictures_in
from lamina.journal import State
from lamina.ports import JournalStore
from lamina.record.record import Record
from lamina.values.entry import RequestEntry
from lamina.values.prompt import Prompt
from lamina.values.settings import Target
from lamina.values.wire import WireRequest


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
        return parameters.wire_request(prompt, target, await self.pictures(prompt, state))

    async def pictures(self, prompt: Prompt, state: State | None = None) -> Mapping[str, bytes]:
        """The pictures of a prompt, by digest.

        Raises:
            JournalError: one is not there any more.
        """
        if not (state or self._record.state).pictured:
            return {}
        return {digest: await self._store.get_blob(digest) for digest in pictures_in(prompt)}
