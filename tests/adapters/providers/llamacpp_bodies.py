"""Requests on the two wires of the embedded model, from what was said."""

from collections.abc import Sequence
from typing import Any, Literal

from lamina.adapters.providers.model_book import load_book
from lamina.core.layers import Assembler, Layout
from lamina.core.values.collections import Chain
from lamina.core.values.envelope import Envelope, Options, SystemPart, SystemParts
from lamina.core.values.message import Block, Message, Role, ToolDefinition
from lamina.core.values.settings import CacheRules, Target
from lamina.core.values.wire import WireRequest

LlamaWire = Literal["llamacpp", "llamacpp_tools"]
ToldMessage = tuple[Role, Sequence[Block]]


def llama_target(wire: LlamaWire) -> Target:
    return Target(
        provider="local",
        model="tiny",
        wire=wire,
        window=2_048,
        max_output=256,
        cache=CacheRules(lifetime_s=None, keeps_answers=True),
        enforces_citations=True,
    )


def llama_request(
    wire: LlamaWire,
    *messages: ToldMessage,
    tools: Sequence[ToolDefinition] = (),
    system: str = "",
    options: Options | None = None,
    session: str = "",
    citations: tuple[int, ...] = (),
) -> WireRequest:
    envelope = Envelope(
        system=SystemParts([SystemPart(name="system", text=system)] if system else []),
        tools=tuple(tools),
        cached=Chain(
            Message(role=role, blocks=tuple(blocks), id=f"m{n}")
            for n, (role, blocks) in enumerate(messages)
        ),
    )
    assembler = Assembler(lambda text: len(text.split()), Layout(promotion="lazy", wire=wire))
    return WireRequest(
        prompt=assembler.assemble(envelope, {}, 0),
        target=llama_target(wire),
        options=options or Options(),
        cache_key=session,
        citations=citations,
    )


def llama_body(wire: LlamaWire, *messages: ToldMessage, **given: Any) -> dict[str, Any]:
    request = llama_request(wire, *messages, **given)
    return load_book().wire(request.target).encode(request)
