"""An answer as Gemini writes it: parts, with signatures where the model signs.

Law: every answer gets its own signatures, and the emulator recognises all of them.
"""

from base64 import b64decode, b64encode
from collections.abc import Iterator, Sequence
from hashlib import sha256
from typing import Any

from lamina.emulators.answers import EmulatedAnswer
from lamina.emulators.gemini.bodies import GenerateBody
from lamina.emulators.gemini.checks import SIGNATURE_PREFIX, signs_calls


def response_parts(
    answer: EmulatedAnswer, body: GenerateBody, model: str, response: str
) -> Iterator[dict[str, Any]]:
    """The parts of an answer as they are streamed: thoughts if asked for, text, calls."""
    config = body.generation_config
    thinking = config.thinking_config if config else None
    if answer.thinking and thinking is not None and thinking.include_thoughts:
        for piece in EmulatedAnswer(text=answer.thinking).pieces():
            yield {"text": piece, "thought": True}
    if answer.text:
        for piece in answer.pieces():
            yield {"text": piece}
    for index, call in enumerate(answer.calls):
        function_call: dict[str, Any] = {"name": call.name, "args": call.arguments}
        part: dict[str, Any] = {"functionCall": function_call}
        if signs_calls(model):
            # Older models often send no ids. Of parallel calls only the first is signed.
            function_call["id"] = f"{response}-{index}"
            if index == 0:
                part["thoughtSignature"] = _sign(response)
        yield part


def closing_parts(answer: EmulatedAnswer, model: str) -> list[dict[str, Any]]:
    """What comes behind the last part of a stream: the signature of an answer, on an empty text."""
    if answer.calls or not answer.thinking or not signs_calls(model):
        return []
    return [{"text": "", "thoughtSignature": _sign(answer.text)}]


def join_parts(parts: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """The parts of an answer in one piece: a text is one part, and carries its signature."""
    joined: list[dict[str, Any]] = []
    for part in parts:
        before = joined[-1] if joined else {}
        is_text = "text" in part and "text" in before and "thoughtSignature" not in before
        if is_text and part.get("thought") == before.get("thought"):
            joined[-1] = before | part | {"text": before["text"] + part["text"]}
        else:
            joined.append(part)
    return joined


def _sign(what: str) -> str:
    return b64encode(b64decode(SIGNATURE_PREFIX) + sha256(what.encode()).digest()[:18]).decode()
