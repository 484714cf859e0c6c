"""When a session is compacted, and how that is kept."""

from collections.abc import Sequence

from lamina.assembly.page import Page
from lamina.assembly.planner import find_boundary
from lamina.compaction import Trigger
from lamina.ports import Summarizer
from lamina.record.layouts import Layouts
from lamina.record.record import Record
from lamina.session.compactor import CompactionOutcome, Compactor, ReadBlobs
from lamina.values.item import Item
from lamina.values.settings import Promotion, Target


class Compactions:
    """The compactions of one session, one after the other."""

    def __init__(
        self, record: Record, bench: Layouts, summarizer: Summarizer | None, blobs: ReadBlobs
    ) -> None:
        self._record = record
        self._bench = bench
        self._blobs = blobs
        self.summarizer = summarizer

    async def if_due(
        self,
        pen: Page,
        target: Target,
        promotion: Promotion,
        texts: Sequence[str] = (),
        items: Sequence[Item] = (),
        *,
        at_end: bool = False,
    ) -> CompactionOutcome | None:
        """Compacts if the next request would be over the threshold. Without anybody who could
        summarise, pruning does this in a way that spares the cache."""
        state = pen.state
        if self.summarizer is None or state.settings.compaction == "off":
            return None
        boundary = None if at_end else find_boundary(state, target, pen.at)
        cold = boundary is not None and boundary.kind != "first_request"
        if not self._compactor(pen, target, promotion).is_due(state, texts, items, cold=cold):
            return None
        return await self.now(pen, target, promotion, "threshold")

    async def now(
        self, pen: Page, target: Target, promotion: Promotion, trigger: Trigger = "manual"
    ) -> CompactionOutcome:
        return await self._compactor(pen, target, promotion).compact(pen, trigger)

    async def keep(self, pen: Page, *, leaving: bool = False) -> Page:
        """Keeps a compaction by itself: what a model took its time for is not lost with the request
        behind it. Not while another request is open, unless that one is to be left."""
        if self._record.state.open_request is not None and not leaving:
            return pen
        await self._record.keep(pen.written, pen.state)
        return self._record.pen()

    def _compactor(self, pen: Page, target: Target, promotion: Promotion) -> Compactor:
        return Compactor(
            target=target,
            wire=self._bench.book.wire(target),
            room=self._bench.room(target, pen.state),
            assembler=self._bench.assembler_for(target, promotion),
            summarizer=self.summarizer,
            blobs=self._blobs,
            cache_key=self._record.id,
        )
