"""Conversations that the server holds, so that a request sends only what is new (`thread`).

Law: a request that continues a thread counts as one that sends all of it.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from lamina.emulators.anthropic.refusals import AnthropicRefusal, refuse_unless

JSON = dict[str, Any]
# What a thread was created with, and a request that continues it does not repeat.
_CREATE_ONLY = ("system", "tools")


class AnthropicThreads:
    """By the id of an answer: the request that it was given to, and the answer."""

    def __init__(self) -> None:
        self._held: dict[str, JSON] = {}

    def resume(self, body: JSON) -> JSON:
        """The whole request of one that may only say what is new.

        Raises:
            AnthropicRefusal: there is no such thread, or it is continued in a wrong way.
        """
        thread = body.get("thread") or {}
        if thread.get("type") != "continue":
            refuse_unless(
                thread.get("type", "create") == "create",
                "thread: Input tag is not one of the expected tags: 'create', 'continue'",
            )
            return body
        held = self._held.get(str(thread.get("previous_message_id")))
        if held is None:
            raise AnthropicRefusal(
                "thread.previous_message_id: no such thread", status=404, kind="not_found_error",
                details={"error_code": "thread_not_found"},
            )  # fmt: skip
        for name in _CREATE_ONLY:
            refuse_unless(name not in body, f"{name}: cannot be set when continuing a thread")
        return held | body | {"messages": [*held["messages"], *body.get("messages", ())]}

    def keep(self, answer_id: str, body: JSON, content: Sequence[Mapping[str, Any]]) -> None:
        """Holds a request and its answer, if the request asks for it."""
        if not body.get("thread"):
            return
        answer = {"role": "assistant", "content": list(content)}
        state = {name: body[name] for name in _CREATE_ONLY if name in body}
        self._held[answer_id] = state | {"messages": [*body["messages"], answer]}
