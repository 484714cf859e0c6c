"""What both wires of the embedded llama.cpp say besides the messages."""

from collections.abc import Mapping, Sequence
from typing import Any

from lamina.adapters.providers.wires.citation_grammar import write_citation_grammar
from lamina.core.values.wire import WireRequest

# Always the likeliest word, which a small model knows best. Penalties on repetition make it depart
# from the facts it was given, and spell words in odd tokens that its cache then lacks.
TEMPERATURE = 0.0


def write_body(
    request: WireRequest, messages: Sequence[Mapping[str, Any]], form: Mapping[str, Any]
) -> dict[str, Any]:
    """The body of a chat completion. `form` is what holds the answer to a form, if anything does:
    tools or a schema; without it that may be a grammar. `session` tells whose cache to use."""
    options = request.options
    body: dict[str, Any] = {
        "model": request.target.model,
        "messages": messages,
        "temperature": TEMPERATURE if options.temperature is None else options.temperature,
        "max_tokens": options.max_tokens or request.target.max_output,
    }
    if options.top_p is not None:
        body["top_p"] = options.top_p
    body |= form
    if numbers := request.enforced_citations:
        body["grammar"] = write_citation_grammar(numbers)
    if request.cache_key:
        body["session"] = request.cache_key
    return body
