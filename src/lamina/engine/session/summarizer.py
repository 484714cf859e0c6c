"""Has a model write summaries: in one piece if that fits its window, otherwise in steps that fit.

Laws: nothing is asked that does not fit. In one piece, the request begins with the bytes that were
sent, so that the provider's cache serves them, and only the instruction is new. If a step fails,
the summary of its part is extracted, and this is reported. Requests and their costs are recorded.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import aclosing
from typing import Any

import anyio
import anyio.lowlevel
import msgspec
from msgspec import Struct
from msgspec.structs import replace

from lamina.core.assembly.budget import Budget, assemble_standing
from lamina.core.assembly.history_strip import QUESTION_TOKENS
from lamina.core.assembly.request_draft import Page
from lamina.core.assembly.warm_prefix import sent_key
from lamina.core.codec import mend_text
from lamina.core.compaction.compaction_plan import CompactionPlan
from lamina.core.compaction.extractive_summary import extract_summary
from lamina.core.compaction.summary_instruction import (
    SummaryPart,
    finish_summary,
    is_usable_summary,
    split_into_parts,
    step_instruction,
    summary_instruction,
)
from lamina.core.compaction.summary_sheet import quote_within, shorten, without_notice
from lamina.core.layers import MESSAGE_TOKENS, Assembler
from lamina.core.ledger import cost_of
from lamina.core.ledger.cost import RequestPrice, upper_tokens, writes_long
from lamina.core.ports import Providers, Summarizer, SummaryJob, Wire
from lamina.core.values.entry import SUMMARIZED, CustomEntry
from lamina.core.values.envelope import Envelope
from lamina.core.values.event import SummaryStep, UsageReported
from lamina.core.values.message import Message, Text
from lamina.core.values.prompt import Prompt, total_tokens
from lamina.core.values.settings import Target
from lamina.core.values.usage import Usage
from lamina.core.values.wire import Reply, ResentPiece, WireRequest
from lamina.engine.session.session_ports import Emit
from lamina.engine.session.session_spending import Bill, ProviderCall, Spending
from lamina.errors import ProviderError, SpendError

# Returns the bytes of the pictures in a prompt.
ReadBlobs = Callable[[Prompt], Awaitable[Mapping[str, bytes]]]
# A summary may be longer than requested, but not by more than this; in steps by less.
TOO_LONG = 2
STEP_TOO_LONG = 1.5
# Whatever does not fit into this many parts is extracted, the oldest first.
MAX_STEPS = 24
# With less room than this for a part, there is nothing to summarise.
LEAST_PART = 200
# After this many consecutive failures, the summarizer is not asked for the rest.
FAILURES = 2


class WrittenSummary(Struct, frozen=True, kw_only=True):
    """A finished summary; empty if there is none, with the reason. A `problem` beside a text
    describes the part of it that was extracted; `cost` is in US dollars, and None if part of it is
    unknown.
    """

    text: str = ""
    problem: str = ""
    cost: float | None = None


class CompactionJob:
    """The input of a summarizer; see `ports.SummaryJob`."""

    def __init__(
        self,
        *,
        instruction: str,
        messages: Sequence[Message],
        previous: str,
        max_tokens: int,
        wire: Wire,
        wire_request: WireRequest,
    ) -> None:
        self.target = wire_request.target
        self.instruction = instruction
        self.messages = tuple(messages)
        self.previous = previous
        self.max_tokens = max_tokens
        self._wire = wire
        self._wire_request = wire_request
        # Awaited before a request is sent again that may already have been charged.
        self.reserve_again: Callable[[], Awaitable[None]] = anyio.lowlevel.checkpoint

    def request(self) -> dict[str, Any]:
        """Return the request in the target's wire format: the conversation up to the cut, byte for
        byte as it was sent, and the instruction behind it; or a part of it within the instruction.
        """
        return self._wire.encode(self._wire_request)

    def read(self, answer: object) -> tuple[str, Usage]:
        """Return the text that a summarizer returned, and its cost."""
        if isinstance(answer, str):
            return mend_text(answer), Usage()
        reply = answer if isinstance(answer, Reply) else self._wire.decode(answer)
        texts = [block.text for block in reply.blocks if isinstance(block, Text)]
        return mend_text("".join(texts)), reply.usage


class SummaryWriter:
    """Writes the summary for one compaction, using a summarizer."""

    def __init__(
        self, page: Page, assembler: Assembler, target: Target, wire: Wire, room: Budget,
        summarizer: Summarizer, blobs: ReadBlobs, spending: Spending, emit: Emit,
    ) -> None:  # fmt: skip
        self._page = page
        self._assembler = assembler
        self._count = assembler.count_text
        self._words = assembler.layout.wording
        self._target = target
        self._wire = wire
        # The maximum that the counter may report for a request and its answer.
        self._window = int(room.window / room.calibration)
        self._calibration = room.calibration
        self._summarizer = summarizer
        self._blobs = blobs
        self._spending = spending
        self._emit = emit
        self._cost: float | None = 0.0

    async def write(self, plan: CompactionPlan, messages: Sequence[Message]) -> WrittenSummary:
        """Return the summarizer's summary of the messages that `plan` drops, or why there is
        none.
        """
        return replace(await self._write(plan, messages), cost=self._cost)

    async def _write(self, plan: CompactionPlan, messages: Sequence[Message]) -> WrittenSummary:
        dropped = messages[: plan.first_kept]
        instruction = summary_instruction(plan, self._words)
        left = self._window - self._prefix_tokens(dropped) - self._count(instruction)
        if left < plan.summary_tokens:
            return await self._write_in_steps(plan, dropped)
        limit = min(plan.summary_tokens * TOO_LONG, left)
        envelope = replace(
            self._page.state.envelope, cached=self._page.state.envelope.cached.until(len(dropped))
        )
        request = await self._encode(envelope, instruction, limit)
        job = CompactionJob(
            instruction=instruction, messages=dropped, previous=plan.previous_summary,
            max_tokens=limit, wire=self._wire, wire_request=request,
        )  # fmt: skip
        tokens = self._prefix_tokens(dropped) + self._count(instruction)
        text, problem, usage = await self._ask(job, tokens)
        await self._account(usage)
        if problem:
            return WrittenSummary(problem=problem)
        return self._finish(plan, text)

    def _prefix_tokens(self, dropped: Sequence[Message]) -> int:
        """Return the tokens of the bytes that were sent, up to the cut."""
        state = self._page.state
        front = assemble_standing(state, self._assembler).front
        sizes = self._assembler.message_sizes(dropped, state.library.items)
        return total_tokens(front) + sum(sizes) + MESSAGE_TOKENS

    def _finish(self, plan: CompactionPlan, text: str, problem: str = "") -> WrittenSummary:
        count, max_tokens = self._count, TOO_LONG * plan.summary_tokens
        question = shorten(plan.question, QUESTION_TOKENS, count)
        summary = finish_summary(text, plan.files, question=question)
        if not summary:
            problem = "the summarizer said nothing"
        # A summary that saves less than half would soon have to be made again.
        elif not is_usable_summary(summary, plan.tokens_dropped // 2, count):
            problem = "the summarizer said more than half of what it would stand for"
        elif count(text) > max_tokens:
            problem = f"the summarizer said more than {max_tokens:,} tokens"
        else:
            return WrittenSummary(text=summary, problem=problem)
        return WrittenSummary(problem=problem)

    # -- in steps --------------------------------------------------------------------------------

    async def _write_in_steps(
        self, plan: CompactionPlan, dropped: Sequence[Message]
    ) -> WrittenSummary:
        """Return one summary for each part, covering it and everything before it."""
        max_tokens = int(plan.summary_tokens * STEP_TOO_LONG)
        # The largest instruction: that of the last part. Each step gets at most `max_tokens`.
        empty = SummaryPart(messages=range(0), text="")
        around = self._count(step_instruction(plan, self._words, empty, MAX_STEPS, MAX_STEPS, "x"))
        room = self._window - around - 2 * max_tokens - MESSAGE_TOKENS
        if room < LEAST_PART:
            return WrittenSummary(problem="the window is too small for the summarizer")
        parts = split_into_parts(dropped, room, self._count)
        skipped = max(0, len(parts) - MAX_STEPS)
        carried, failures, extracted, problem = plan.previous_summary, 0, 0, ""
        if skipped:
            problem = f"there are more than {MAX_STEPS} parts"
        for number, part in enumerate(parts, 1):
            messages = dropped[part.messages.start : part.messages.stop]
            text, trouble, usage = "", "", Usage()
            if number > skipped and failures < FAILURES:
                await self._emit(SummaryStep(step=number, of=len(parts)))
                previous = quote_within(carried, max_tokens, self._count) if carried else ""
                instruction = step_instruction(
                    plan, self._words, part, number, len(parts), previous
                )
                request = await self._encode(Envelope(), instruction, max_tokens)
                job = CompactionJob(
                    instruction=instruction, messages=messages, previous=carried,
                    max_tokens=max_tokens, wire=self._wire, wire_request=request,
                )  # fmt: skip
                text, trouble, usage = await self._ask(job, self._count(instruction))
                if not trouble and not text.strip():
                    trouble = "the summarizer said nothing"
                failures = failures + 1 if trouble else 0
                problem = trouble or problem
                names = (messages[0].id, messages[-1].id)
                await self._account(usage, (number, len(parts)), names, trouble)
            if text.strip() and not trouble:
                carried = shorten(text, max_tokens, self._count)
            else:
                extracted += 1
                extract = extract_summary(messages, plan.summary_tokens // 2, self._count)
                extract = without_notice(extract)
                carried = shorten(f"{carried}\n\n{extract}".strip(), max_tokens, self._count)
        if extracted == len(parts):
            return WrittenSummary(problem=problem)
        if extracted:
            problem = f"{extracted} of {len(parts)} parts were extracted: {problem}"
        return self._finish(plan, carried, problem)

    # -- asking ----------------------------------------------------------------------------------

    async def _ask(self, job: CompactionJob, tokens: int) -> tuple[str, str, Usage]:
        """Return the summarizer's answer to a job of that many tokens, or what went wrong, and its
        cost.
        """
        limit = self._page.state.settings.summary_timeout_s
        text, usage = "", Usage()
        call = self._call(job, tokens)
        try:
            bill = await self._spending.reserve(call)
        except SpendError as error:
            return "", f"the summarizer was not asked: {error}", Usage()

        async def reserve_again() -> None:
            nonlocal bill
            bill = await self._spending.reserve(call)

        job.reserve_again = reserve_again
        with anyio.move_on_after(limit) as scope:
            try:
                text, usage = job.read(await self._summarizer.summarize(job))
            except Exception as error:  # noqa: BLE001 - whatever it is, it is the summarizer's
                await self._spending.end_failed(bill, error)
                problem = mend_text(f"the summarizer failed: {type(error).__name__}: {error}")
                return "", problem, Usage()
            await self._settle(bill, usage)
        if scope.cancelled_caught:
            return "", f"the summarizer took longer than {limit:g} s", Usage()
        return text, "", usage

    def _call(self, job: CompactionJob, tokens: int) -> ProviderCall:
        """Return the values that determine the price of a summary."""
        target = self._target
        counted = round((tokens + MESSAGE_TOKENS) * self._calibration)
        price = RequestPrice(
            target=target,
            tokens=upper_tokens(counted, target),
            counted=counted,
            cached=0,
            output_limit=job.max_tokens,
            writes_long=writes_long(self._page.state.settings, target),
        )
        return ProviderCall(price=price, purpose="summary")

    async def _settle(self, bill: Bill, usage: Usage) -> None:
        """Settle a summarizer that returns only a string and reports no usage: it may not have made
        a request, so nothing is recorded needlessly; the reservation counts.
        """
        if usage == Usage() and not bill.reservation:
            return
        with anyio.CancelScope(shield=True):
            await self._spending.settle(bill, None if usage == Usage() else usage)

    async def _encode(self, envelope: Envelope, instruction: str, limit: int) -> WireRequest:
        """Return a request that asks for a summary behind the contents of `envelope`."""
        state = self._page.state
        ask = Message(role="user", blocks=(Text(instruction),), id="summarize")
        envelope = replace(envelope, tool_texts=(), uncached=(ask,))
        # Not the one in use, whose totals cover all of history. Its counts are rough: an encoder
        # only asks whether a prefix is long enough for a cache.
        assembler = Assembler(lambda text: len(text) // 4, self._assembler.layout)
        prompt = assembler.assemble(envelope, state.library.items, len(envelope.cached))
        return WireRequest(
            prompt=prompt,
            target=self._target,
            # A summary is prose, whatever the format of the session's answers.
            options=replace(state.options, max_tokens=limit, schema=None),
            blobs=await self._blobs(prompt),
            cache_key=state.session.session,
            routing_key=sent_key(last, state) if (last := state.requests.sent) else "",
            cache_ttl=state.settings.cache_ttl,
            explicit_cache=state.settings.explicit_cache,
        )

    async def _account(
        self, usage: Usage, step: tuple[int, int] = (1, 1), messages: tuple[str, ...] = (),
        problem: str = "",
    ) -> None:  # fmt: skip
        """Record that a summary was requested, if that adds anything to its outcome."""
        cost = cost_of(usage, self._target)
        if self._cost is not None:
            self._cost = None if cost is None or usage == Usage() else self._cost + cost
        if usage == Usage() and step == (1, 1):
            return
        data = {
            "target": self._target.name, "step": step[0], "of": step[1],
            "messages": list(messages), "problem": problem,
            "usage": msgspec.to_builtins(usage), "cost": cost,
        }  # fmt: skip
        self._page.write(CustomEntry, kind=SUMMARIZED, data=data)
        if usage != Usage():
            await self._emit(UsageReported(request="summary", usage=usage, cost=cost))


class ModelSummarizer:
    def __init__(self, providers: Providers) -> None:
        self._providers = providers

    async def summarize(self, job: SummaryJob) -> object:
        """Return the model's reply.

        Raises:
            ProviderError: there is no reply; the summary is then extracted.
        """
        provider = await self._providers.provider(job.target)
        reply: Reply | None = None
        async with aclosing(provider.stream(job.request())) as pieces:  # type: ignore[type-var]
            async for piece in pieces:
                if isinstance(piece, Reply):
                    reply = piece
                elif isinstance(piece, ResentPiece) and isinstance(job, CompactionJob):
                    await job.reserve_again()
        if reply is None:
            raise ProviderError("the summary broke off")
        return reply
