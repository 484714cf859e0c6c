"""What a turn costs in other libraries: from a stored conversation to provider messages.

Each function builds an n-message conversation once and returns a closure to time. `*_assemble` is
the library's own step up to its message objects, `*_request` maps those to OpenAI messages. The two
do not overlap, so their sum is the turn. No closure does any I/O.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from langchain_core.messages import BaseMessage
    from pydantic_ai import Agent
    from pydantic_ai.messages import ModelMessage

__all__ = ["langchain_assemble", "langchain_request", "pydantic_ai_assemble", "pydantic_ai_request"]

_SYSTEM = "You are a careful assistant. Answer from the conversation."
_QUESTION = "And what follows from that for the next release?"
_ROOM = 1_000_000_000  # a budget that never binds: only the bookkeeping is measured


def _text(index: int) -> str:
    """About sixty words, different in every message."""
    return " ".join(f"word{(index * 7 + place) % 997}" for place in range(60))


def _langchain_history(n: int) -> list[BaseMessage]:
    from langchain_core.messages import AIMessage, HumanMessage

    return [
        AIMessage(_text(index), id=f"m{index}")
        if index % 2
        else HumanMessage(_text(index), id=f"m{index}")
        for index in range(n)
    ]


def langchain_assemble(n: int) -> Callable[[], object]:
    """Fill the prompt template with the history, then trim with the approximate counter."""
    from langchain_core.messages import trim_messages
    from langchain_core.prompts import ChatPromptTemplate, MessagesPlaceholder

    history = _langchain_history(n)
    prompt = ChatPromptTemplate.from_messages(
        [("system", _SYSTEM), MessagesPlaceholder("history"), ("human", "{question}")]
    )

    def assemble() -> object:
        value = prompt.invoke({"history": history, "question": _QUESTION})
        return trim_messages(
            value.to_messages(),
            max_tokens=_ROOM,
            token_counter="approximate",
            strategy="last",
            include_system=True,
            start_on="human",
        )

    return assemble


def langchain_request(n: int) -> Callable[[], object]:
    """Convert the assembled messages to OpenAI dicts."""
    from langchain_core.messages import HumanMessage, SystemMessage, convert_to_openai_messages

    messages = [SystemMessage(_SYSTEM), *_langchain_history(n), HumanMessage(_QUESTION)]
    return lambda: convert_to_openai_messages(messages)


def _pydantic_ai_history(n: int) -> list[ModelMessage]:
    from pydantic_ai.messages import ModelRequest, ModelResponse, TextPart, UserPromptPart
    from pydantic_ai.usage import RequestUsage

    history: list[ModelMessage] = []
    for index in range(n):
        if index % 2:
            # Real responses report usage, and the window's estimate starts from the last report.
            usage = RequestUsage(input_tokens=80 * index, output_tokens=80)
            history.append(
                ModelResponse(
                    parts=[TextPart(_text(index))],
                    usage=usage,
                    model_name="gpt",
                    provider_name="openai",
                )
            )
        else:
            history.append(ModelRequest(parts=[UserPromptPart(_text(index))], instructions=_SYSTEM))
    return history


def _pydantic_ai_agent() -> Agent[None, str]:
    from pydantic_ai import Agent
    from pydantic_ai.messages import ModelResponse, TextPart
    from pydantic_ai.models.function import AgentInfo, FunctionModel
    from pydantic_ai.usage import RequestUsage
    from pydantic_ai_harness.compaction import SlidingWindowCompaction

    async def answer(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        # With usage given, the local model does not count the words of the whole history.
        return ModelResponse(
            parts=[TextPart("ok")], usage=RequestUsage(input_tokens=1, output_tokens=1)
        )

    return Agent(
        FunctionModel(answer),
        instructions=_SYSTEM,
        capabilities=[SlidingWindowCompaction(max_tokens=_ROOM)],
    )


def pydantic_ai_assemble(n: int) -> Callable[[], object]:
    """A whole agent run on a model that answers at once.

    Included: the run's graph, instructions, history cleaning and repair, the sliding window's size
    check, message preparation, and a constant for the event loop and the one-word answer.
    """
    agent, history = _pydantic_ai_agent(), _pydantic_ai_history(n)
    return lambda: agent.run_sync(_QUESTION, message_history=history)


def pydantic_ai_request(n: int) -> Callable[[], object]:
    """Map the prepared messages to OpenAI chat messages, as the chat model does before it sends."""
    from pydantic_ai.messages import ModelRequest
    from pydantic_ai.models import ModelRequestParameters
    from pydantic_ai.models.openai import OpenAIChatModel
    from pydantic_ai.providers.openai import OpenAIProvider

    model = OpenAIChatModel("gpt-4o", provider=OpenAIProvider(api_key="unused"))
    question = ModelRequest.user_text_prompt(_QUESTION, instructions=_SYSTEM)
    messages = [*_pydantic_ai_history(n), question]
    parameters = ModelRequestParameters()

    def request() -> object:
        # Private, but it is the one step between prepared messages and the client call. It never
        # suspends for text, so one step runs it to its end without an event loop in the figure.
        try:
            model._map_messages(messages, parameters).send(None)
        except StopIteration as done:
            result: object = done.value
            return result
        raise RuntimeError("mapping text messages was expected not to wait")

    return request
