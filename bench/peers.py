"""Peer rows of the cache benchmark: how other libraries decide what a model sees.

Every row gets the same neutral conversation and the same token counts, and calls the library's own
trimming for every request. Libraries are imported only when their row is built.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal, Protocol, final

from versions import version

if TYPE_CHECKING:
    import asyncio

    from langchain_core.messages import BaseMessage
    from llama_index.core.base.llms.types import ChatMessage
    from llama_index.core.memory import Memory
    from pydantic_ai import Agent
    from pydantic_ai.messages import ModelMessage, ModelResponse
    from pydantic_ai.models.function import AgentInfo
    from sqlalchemy.ext.asyncio import AsyncEngine

__all__ = ["LangChainTrim", "Line", "LlamaIndexContext", "PydanticAIWindow", "Row", "rows"]

_TOOL = "tool"  # the neutral conversation does not name its tools


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """One message of the neutral conversation."""

    role: Literal["system", "user", "assistant", "tool"]
    text: str
    tokens: int
    calls: tuple[str, ...] = ()
    call_id: str | None = None


class Row(Protocol):
    """One way of deciding what the model sees."""

    name: str
    version: str

    def start(self, system: Line, budget: int | None) -> None: ...
    def say(self, line: Line) -> None: ...
    def ask(self, line: Line, notes: Sequence[Line]) -> None: ...
    def request(self) -> list[Line]: ...


@dataclass(frozen=True, slots=True)
class _Turn:
    """The turn in progress: history gets it, without its notes, when the next one starts."""

    notes: tuple[Line, ...] = ()
    lines: tuple[Line, ...] = ()

    def plus(self, line: Line) -> _Turn:
        return replace(self, lines=(*self.lines, line))


@final
class LangChainTrim:
    """`trim_messages` over a chat history that stores bare questions.

    The RunnableWithMessageHistory convention: the notes stand in this turn's human message, the
    history gets the question alone, and the trimmer runs on system + history + current turn.
    A turn that is larger than the budget is dropped whole: only the system message is sent.
    """

    def __init__(self) -> None:
        self.name = "LangChain trim_messages"
        self.version = f"langchain-core {version('langchain-core')}"
        self._history: list[
            BaseMessage
        ] = []  # its history classes are deprecated; a list is the state
        self._system: BaseMessage
        self._turn = _Turn()
        self._budget = sys.maxsize
        self._lines: dict[str, tuple[Line, ...]] = {}

    def start(self, system: Line, budget: int | None) -> None:
        self._history = []
        self._turn = _Turn()
        self._budget = sys.maxsize if budget is None else budget
        self._lines = {}
        self._system = self._message(system)

    def say(self, line: Line) -> None:
        self._turn = self._turn.plus(line)

    def ask(self, line: Line, notes: Sequence[Line]) -> None:
        self._history += [self._message(past) for past in self._turn.lines]
        self._turn = _Turn(tuple(notes), (line,))

    def request(self) -> list[Line]:
        from langchain_core.messages import trim_messages

        turn = [
            self._message(line, notes=() if index else self._turn.notes, key=f"now-{index}")
            for index, line in enumerate(self._turn.lines)
        ]
        sent = trim_messages(
            [self._system, *self._history, *turn],
            max_tokens=self._budget,
            token_counter=self._count,
            strategy="last",
            include_system=True,
            start_on="human",
            allow_partial=False,
        )
        return [line for message in sent for line in self._lines_of(message)]

    def _message(
        self, line: Line, *, notes: Sequence[Line] = (), key: str | None = None
    ) -> BaseMessage:
        from langchain_core.messages import AIMessage, HumanMessage, SystemMessage, ToolMessage

        key = key or f"line-{len(self._lines)}"
        self._lines[key] = (*notes, line)
        if line.role == "system":
            return SystemMessage(line.text, id=key)
        if line.role == "user":
            return HumanMessage("\n\n".join(part.text for part in (*notes, line)), id=key)
        if line.role == "tool":
            return ToolMessage(line.text, tool_call_id=line.call_id or "", id=key)
        return AIMessage(
            line.text,
            id=key,
            tool_calls=[{"name": _TOOL, "args": {}, "id": call} for call in line.calls],
        )

    def _lines_of(self, message: BaseMessage) -> tuple[Line, ...]:
        return self._lines[message.id or ""]

    def _count(self, messages: list[BaseMessage]) -> int:
        return sum(line.tokens for message in messages for line in self._lines_of(message))


@final
class LlamaIndexContext:
    """`SlotFiles` with the ContextChatEngine prompt: this turn's notes stand in the system message.

    The engine's own helper builds the prompt; it puts the context *in front of* the system text.
    Memory keeps 70% of its limit for chat history and never sees the system message, the notes or
    the open turn, so the whole prompt fits the budget only while those fit the other 30%.
    An open turn stays outside memory until it ends, as in ContextChatEngine and FunctionAgent.
    """

    def __init__(self) -> None:
        self.name = "LlamaIndex Memory + ContextChatEngine prompt"
        self.version = f"llama-index-core {version('llama-index-core')}"
        self._system = Line(role="system", text="", tokens=0)
        self._turn = _Turn()
        self._lines: dict[str, Line] = {}
        self._sizes: dict[str, list[int]] = {}
        self._memory: Memory
        self._engine: AsyncEngine | None = None
        self._loop: asyncio.AbstractEventLoop | None = None

    def start(self, system: Line, budget: int | None) -> None:
        import asyncio

        from llama_index.core.memory import Memory
        from sqlalchemy.ext.asyncio import create_async_engine

        self.close()
        self._system, self._turn = system, _Turn()
        self._lines, self._sizes = {}, {}
        # The default store is an in-memory SQLite; owning its engine lets close() end its thread.
        self._loop = asyncio.new_event_loop()
        self._engine = create_async_engine("sqlite+aiosqlite:///:memory:")
        self._memory = Memory.from_defaults(
            token_limit=sys.maxsize if budget is None else budget,
            tokenizer_fn=self._tokens,
            async_engine=self._engine,
        )

    def close(self) -> None:
        if self._loop is not None and self._engine is not None:
            self._loop.run_until_complete(self._engine.dispose())
            self._loop.close()
        self._loop = self._engine = None

    def say(self, line: Line) -> None:
        self._turn = self._turn.plus(line)

    def ask(self, line: Line, notes: Sequence[Line]) -> None:
        messages = [self._message(past) for past in self._turn.lines]
        if messages:
            assert self._loop is not None
            # Question first, then the rest of the turn: the order and grouping the engines use.
            self._loop.run_until_complete(self._memory.aput(messages[0]))
            if messages[1:]:
                self._loop.run_until_complete(self._memory.aput_messages(messages[1:]))
        self._turn = _Turn(tuple(notes), (line,))

    def request(self) -> list[Line]:
        from llama_index.core.base.llms.types import MessageRole
        from llama_index.core.chat_engine.context import DEFAULT_CONTEXT_TEMPLATE
        from llama_index.core.chat_engine.utils import get_prefix_messages_with_context
        from llama_index.core.prompts import PromptTemplate

        assert self._loop is not None
        question = self._turn.lines[0].text if self._turn.lines else ""
        history = self._loop.run_until_complete(self._memory.aget(input=question))
        system, *kept, _query = get_prefix_messages_with_context(
            PromptTemplate(DEFAULT_CONTEXT_TEMPLATE),
            self._system.text,
            [],
            history,
            MessageRole.SYSTEM,
        )
        return [
            *self._split(system.content or ""),
            *(self._lines[str(message.additional_kwargs)] for message in kept),
            *self._turn.lines,
        ]

    def _split(self, prompt: str) -> list[Line]:
        """The system message as lines, in the order its template puts context and system text."""
        notes = [replace(note, role="system") for note in self._turn.notes]
        context, own = prompt.index("{context_str}"), prompt.rindex(self._system.text.strip())
        return [*notes, self._system] if context < own else [self._system, *notes]

    def _message(self, line: Line) -> ChatMessage:
        from llama_index.core.base.llms.types import (
            ChatMessage,
            MessageRole,
            TextBlock,
            ToolCallBlock,
        )

        # Memory stores messages as rows, so identity is lost; the keyword arguments survive and
        # are counted as text, which makes them the place that carries the line and its size.
        key: dict[str, object] = {"line": len(self._lines)}
        if line.call_id is not None:
            key["tool_call_id"] = line.call_id
        self._lines[str(key)] = line
        self._sizes[str(key)] = [0] * line.tokens
        return ChatMessage(
            role=MessageRole(line.role),
            blocks=[
                TextBlock(text=line.text),
                *(ToolCallBlock(tool_call_id=call, tool_name=_TOOL) for call in line.calls),
            ],
            additional_kwargs=key,
        )

    def _tokens(self, text: str) -> list[int]:
        return self._sizes.get(text, [])


@final
class PydanticAIWindow:
    """An `Agent` with the official `SlidingWindowCompaction` over a history of prompts as sent.

    Notes stay in the prompt they were attached to. Past the budget the window drops to the
    shortest suffix of at least `keep` of it, and that shorter history is what the next turn builds
    on. Each request is a real agent run on a local model.
    """

    def __init__(self, keep: float = 0.5, *, keep_first: bool = False) -> None:
        # The library's own example keeps half of what triggers (max_messages=80, keep_messages=40).
        # Its default also pins the first user prompt; off here, because the agent merges that
        # prompt with the one the window starts on and pins the merged one next time, so what is
        # pinned grows with every cut until no request fits the budget.
        self.name = "Pydantic AI SlidingWindowCompaction"
        self.version = (
            f"pydantic-ai-slim {version('pydantic-ai-slim')}, "
            f"pydantic-ai-harness {version('pydantic-ai-harness')}"
        )
        self._keep = keep
        self._keep_first = keep_first
        self._system = Line(role="system", text="", tokens=0)
        self._agent: Agent[None, str]
        self._history: list[ModelMessage] = []
        self._lines: list[Line] = []
        self._sizes: dict[str, int] = {}
        self._sent: list[Line] = []

    def start(self, system: Line, budget: int | None) -> None:
        from pydantic_ai import Agent
        from pydantic_ai.models.function import FunctionModel
        from pydantic_ai_harness.compaction import SlidingWindowCompaction

        self._system = system
        self._history, self._lines, self._sent = [], [], []
        self._sizes = {system.text: system.tokens}
        window = (
            []
            if budget is None
            else [
                SlidingWindowCompaction(
                    max_tokens=budget,
                    keep_tokens=int(budget * self._keep),
                    tokenizer=self._tokens,
                    preserve_first_user_message=self._keep_first,
                )
            ]
        )
        self._agent = Agent(
            FunctionModel(self._answer), instructions=system.text, capabilities=window
        )

    def say(self, line: Line) -> None:
        from pydantic_ai.messages import (
            ModelRequest,
            ModelResponse,
            TextPart,
            ToolCallPart,
            ToolReturnPart,
        )

        mark = self._mark(line)
        if line.role == "tool":
            self._sizes[line.text] = line.tokens
            part = ToolReturnPart(_TOOL, line.text, line.call_id or "", metadata=mark)
            last = self._history[-1] if self._history else None
            if isinstance(last, ModelRequest) and isinstance(last.parts[-1], ToolReturnPart):
                # One request answers all the calls of a response.
                self._history[-1] = replace(last, parts=[*last.parts, part])
            else:
                self._history.append(ModelRequest(parts=[part]))
            return
        texts = [TextPart(line.text)] if line.text else []
        # The size of a line with calls rides on its first call: its text may well be empty.
        size_key = f'{{"line": {mark["line"]}}}' if line.calls else line.text
        self._sizes[size_key] = line.tokens
        calls = [
            ToolCallPart(_TOOL, "{}" if index else size_key, call)
            for index, call in enumerate(line.calls)
        ]
        self._history.append(ModelResponse(parts=[*texts, *calls], metadata={**mark}))

    def ask(self, line: Line, notes: Sequence[Line]) -> None:
        from pydantic_ai.messages import ModelRequest, TextContent, UserPromptPart

        prompt = (*notes, line)
        # The estimator counts a prompt part as one joined text.
        self._sizes["".join(part.text for part in prompt)] = sum(part.tokens for part in prompt)
        content = [TextContent(part.text, metadata=self._mark(part)) for part in prompt]
        self._history.append(ModelRequest(parts=[UserPromptPart(content)]))

    def request(self) -> list[Line]:
        # No new prompt: the history already ends with the request that is due.
        result = self._agent.run_sync(message_history=self._history)
        # What a caller would pass to the next run, without the local model's stand-in answer.
        self._history = result.all_messages()[:-1]
        return list(self._sent)

    async def _answer(self, messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        """The local model: note what would go on the wire, answer nothing of value."""
        from pydantic_ai.messages import ModelRequest, ModelResponse, TextPart

        self._sent = [self._system] if info.instructions else []
        for message in messages:
            if isinstance(message, ModelRequest):
                self._sent += [line for part in message.parts for line in self._lines_of(part)]
            else:
                self._sent.append(self._lines[(message.metadata or {})["line"]])
        return ModelResponse(parts=[TextPart("ok")])

    def _lines_of(self, part: object) -> list[Line]:
        from pydantic_ai.messages import TextContent, ToolReturnPart, UserPromptPart

        if isinstance(part, UserPromptPart):
            return [
                self._lines[item.metadata["line"]]
                for item in part.content
                if isinstance(item, TextContent)
            ]
        if isinstance(part, ToolReturnPart):
            if part.metadata and "line" in part.metadata:
                return [self._lines[part.metadata["line"]]]
            # The agent answers a call left open by itself; no count of ours exists for that text.
            return [
                Line(
                    role="tool", text=part.model_response_str(), tokens=0, call_id=part.tool_call_id
                )
            ]
        return []

    def _mark(self, line: Line) -> dict[str, int]:
        self._lines.append(line)
        return {"line": len(self._lines) - 1}

    def _tokens(self, text: str) -> int:
        return self._sizes.get(text, 0)


def rows() -> tuple[Callable[[], Row], ...]:
    """A builder for each row, so a missing library costs only its own row."""
    return (LangChainTrim, LlamaIndexContext, PydanticAIWindow)
