"""Summaries from the session's own model: the request begins with what was already sent, so its
cache serves the conversation, and only the instruction is new."""

from contextlib import aclosing

from lamina.core.ports import Providers, SummaryJob
from lamina.core.values.piece import ResentPiece
from lamina.core.values.wire import Reply
from lamina.engine.session.summary_writer import CompactionJob
from lamina.errors import ProviderError


class ModelSummarizer:
    def __init__(self, providers: Providers) -> None:
        self._providers = providers

    async def summarize(self, job: SummaryJob) -> object:
        """The model's reply.

        Raises:
            ProviderError: there is none; the summary is then extracted.
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
