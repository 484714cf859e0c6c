"""An answer as Gemini writes it: parts, signed where the model signs.

Law: what is signed is signed anew for every answer, and always so that the emulator knows it again.
"""

from base64 import b64decode, b64encode
from collections.abc import Iterator
from hashlib import sha256
from typing import Any

from lamina.providers.emulators.answers import EmulatedAnswer
from lamina.providers.emulators.gemini.bodies import SIGNATURE_PREFIX, GenerateBody, signs_calls


def response_parts(
    said: EmulatedAnswer, body: GenerateBody, model: str, response: str
) -> Iterator[dict[str, Any]]:
    """The parts of an answer as they are streamed: thoughts if they are asked for, words, calls."""
    config = body.generation_config
    thinking = config.thinking_config if config else None
    if said.thinking and thinking is not None and thinking.include_thoughts:
        for piece in EmulatedAnswer(text=said.thinking).pieces():
            yield {"text": piece, "thought": True}
    if said.text:
        for piece in said.pieces():
            yield {"text": piece}
    for index, call in enumerate(said.calls):
        called: dict[str, Any] = {"name": call.name, "args": call.arguments}
        part: dict[str, Any] = {"functionCall": called}
        if signs_calls(model):
            # Older models often send no ids. Of parallel calls the first is signed.
            called["id"] = f"{response}-{index}"
            if index == 0:
                part["thoughtSignature"] = _sign(response)
        yield part


def closing_parts(said: EmulatedAnswer, model: str) -> list[dict[str, Any]]:
    """The parts that come with the end: an empty text, which signs the answer if it was thought
    about."""
    if said.calls:
        return []
    if said.thinking and signs_calls(model):
        return [{"text": "", "thoughtSignature": _sign(said.text)}]
    return [{"text": ""}]


def _sign(what: str) -> str:
    return b64encode(b64decode(SIGNATURE_PREFIX) + sha256(what.encode()).digest()[:18]).decode()
