"""Thinking that comes back to the emulated Anthropic, through the official SDK: what is kept, what
is dropped and what is refused."""

from base64 import b64decode, b64encode
from collections.abc import Awaitable, Callable
from copy import deepcopy
from datetime import date
from typing import Any

import anthropic
import anyio
import pytest
from tests.adapters.providers.clients.anthropic_server import HASTY, Asking
from tests.adapters.providers.test_bound_thinking import BETA

from lamina.adapters.providers.model_book import load_book
from lamina.core.values.message import Thinking
from lamina.core.values.usage import InputTransformation
from lamina.emulators.answers import EmulatedAnswer, EmulatedCall, ScriptedAnswers
from lamina.emulators.anthropic.emulator import AnthropicEmulator
from lamina.emulators.emulator import serve_emulator

OPUS, SONNET, HAIKU = "claude-opus-5-5", "claude-sonnet-5-5", "claude-haiku-5-5"
FABLE, MYTHOS = "claude-fable-5-1", "claude-mythos-5-1"
NEW, OLD = "2026-08-31", "2026-08-30"
PREFIX, MODEL = "prefix_binding_mismatch", "model_binding_mismatch"
ACCOUNT = "organization_binding_mismatch"
ELSEWHERE = "The block is bound to a different conversation."
JSON = dict[str, Any]


def tool(name: str, **fields: Any) -> JSON:
    return {"name": name, "input_schema": {"type": "object"}, "description": f"A {name}."} | fields


def thinks(number: int, **fields: Any) -> EmulatedAnswer:
    given = {"thinking": f"Thought {number}.", "text": f"Answer {number}."} | fields
    return EmulatedAnswer(**given)


class Talk:
    """A conversation that is sent by the official SDK. `sent` is what would be sent next."""

    def __init__(self, url: str, server: AnthropicEmulator, model: str = OPUS) -> None:
        self.url, self.server = url, server
        self.sent: JSON = {
            "model": model, "max_tokens": 500, "system": [{"type": "text", "text": "Be terse."}],
            "tools": [tool("clock"), tool("tide")], "messages": [],
        }  # fmt: skip

    def client(self, key: str = "key-1") -> anthropic.AsyncAnthropic:
        return anthropic.AsyncAnthropic(base_url=self.url, api_key=key, max_retries=0)

    async def create(
        self, body: JSON, *, behaviour: str = "", beta: bool = True, key: str = "key-1"
    ) -> JSON:
        async with self.client(key) as client:
            message = await client.messages.create(**controlled(body, behaviour, beta))
        return message.to_dict()

    async def ask(self, question: Any = "Go on?", **options: Any) -> JSON:
        """Asks, and keeps the answer as it came."""
        self.sent["messages"].append({"role": "user", "content": question})
        message = await self.create(self.sent, **options)
        self.sent["messages"].append({"role": "assistant", "content": message["content"]})
        return message

    def next(self, edit: "Callable[[JSON], object] | None" = None) -> JSON:
        """What is asked next, edited."""
        body = deepcopy(self.sent)
        body["messages"].append({"role": "user", "content": "And now?"})
        if edit:
            edit(body)
        return body


def controlled(body: JSON, behaviour: str = "", beta: bool = True) -> JSON:
    given = dict(body)
    if behaviour:
        binding = {"prefix_mismatch_behavior": behaviour}
        given["thinking"] = {"type": "adaptive", "block_binding": binding}
    if beta:
        # Among others, as an application may send some of its own.
        given["extra_headers"] = {"anthropic-beta": f"some-other-beta, {BETA}"}
    return given


def play(
    use: Callable[[Talk], Awaitable[None]],
    *answers: EmulatedAnswer,
    model: str = OPUS,
    since: str = NEW,
) -> None:
    async def main() -> None:
        script = ScriptedAnswers(answers or [thinks(number) for number in range(1, 30)])
        server = AnthropicEmulator(answers=script, account_since=since)
        async with serve_emulator(server) as url:
            await use(Talk(url, server, model))

    anyio.run(main)


def at(*messages: int) -> tuple[str, ...]:
    """The places of the thinking that begins those messages."""
    return tuple(f"messages.{message}.content.0" for message in messages)


def changes(kind: str, reason: str, paths: tuple[str, ...]) -> list[JSON]:
    return [{"type": kind, "path": path, "reason": reason} for path in paths]


# -- edits: what the thinking in messages 1, 3 and 5 is behind -----------------------------------


def drop_thinking(body: JSON, *messages: int) -> None:
    for message in messages:
        del body["messages"][message]["content"][0]


def swap_thinking(body: JSON) -> None:
    first, second = (body["messages"][message]["content"] for message in (1, 3))
    first[0], second[0] = second[0], first[0]


def move_markers(body: JSON) -> None:
    mark = {"type": "ephemeral"}
    body["system"][0]["cache_control"] = mark
    body["tools"][0]["cache_control"] = mark
    body["messages"][3]["content"][1]["cache_control"] = mark


def reorder_keys(body: JSON) -> None:
    body["tools"] = [dict(reversed(tool.items())) for tool in body["tools"]]
    body["system"] = "Be terse."


def set_text(body: JSON, message: int, text: str) -> None:
    body["messages"][message]["content"][-1]["text"] = text


EDITS: dict[str, tuple[Callable[[JSON], object], tuple[str, ...]]] = {
    "nothing": (lambda body: None, ()),
    "the system prompt": (lambda body: body["system"][0].update(text="Be kind."), at(1, 3, 5)),
    "the system prompt removed": (lambda body: body.pop("system"), at(1, 3, 5)),
    "a tool edited": (lambda body: body["tools"][1].update(description="Tides."), at(1, 3, 5)),
    "a tool added": (lambda body: body["tools"].append(tool("wind")), at(1, 3, 5)),
    "a tool removed": (lambda body: body["tools"].pop(), at(1, 3, 5)),
    "the first question": (lambda body: body["messages"][0].update(content="Hm?"), at(1, 3, 5)),
    "a later question": (lambda body: body["messages"][2].update(content="Hm?"), at(3, 5)),
    "a text added to a question": (
        lambda body: body["messages"][2].update(
            content=[{"type": "text", "text": "Go on?"}, {"type": "text", "text": "Please."}]
        ),
        at(3, 5),
    ),
    "an answer": (lambda body: set_text(body, 3, "Something else."), at(5)),
    "the last answer": (lambda body: set_text(body, 5, "Something else."), ()),
    "the first exchange removed": (
        lambda body: body.update(messages=body["messages"][2:]), at(1, 3),
    ),
    "markers moved": (move_markers, ()),
    "keys in another order": (reorder_keys, ()),
    "a deferred tool added": (
        lambda body: body["tools"].append(tool("wind", defer_loading=True)), (),
    ),
    "other parameters": (
        lambda body: body.update(
            max_tokens=99, output_config={"effort": "low"}, metadata={"user_id": "u"},
            tool_choice={"type": "none"},
        ),
        (),
    ),
    "the first thinking removed": (lambda body: drop_thinking(body, 1), ()),
    "the first two removed": (lambda body: drop_thinking(body, 1, 3), ()),
    "the last thinking removed": (lambda body: drop_thinking(body, 5), ()),
    "all thinking removed": (lambda body: drop_thinking(body, 1, 3, 5), ()),
    "thinking in the middle removed": (lambda body: drop_thinking(body, 3), at(5)),
    "thinking moved": (swap_thinking, at(1, 3, 5)),
}  # fmt: skip


@pytest.mark.parametrize("edit", EDITS)
def test_what_an_edit_does_to_the_thinking_behind_it(edit: str) -> None:
    change, failing = EDITS[edit]

    async def use(talk: Talk) -> None:
        for _ in range(3):
            await talk.ask()
        body = talk.next(change)

        async def refused(**options: Any) -> None:
            with pytest.raises(anthropic.BadRequestError) as caught:
                await talk.create(body, **options)
            assert f"{failing[0]}: Invalid `signature` in `thinking` block. {ELSEWHERE}" in str(
                caught.value
            )
            needs_header = f"`{BETA}` value in the `anthropic-beta` header" in str(caught.value)
            assert needs_header == (options.get("beta") is False)
            assert dict(talk.server.thinking_checks[-1].refused) == dict.fromkeys(failing, PREFIX)

        async def taken(kind: str, **options: Any) -> None:
            message = await talk.create(body, **options)
            told = changes(kind, PREFIX, failing)
            assert message.get("input_transformations") == (None if "beta" in options else told)
            check = talk.server.thinking_checks[-1]
            judged = check.dropped if kind == "thinking_dropped" else check.allowed
            assert dict(judged) == dict.fromkeys(failing, PREFIX)
            assert not set(check.kept) & set(failing)

        for since in (NEW, OLD):
            talk.server.account_since = date.fromisoformat(since)
            await taken("thinking_dropped", behaviour="drop_block")
            if failing:
                await refused(behaviour="error")
        # An old account is not held to the check unless it asks for it; a new one is.
        await taken("thinking_mismatch_allowed")
        await taken("thinking_mismatch_allowed", beta=False)
        talk.server.account_since = date.fromisoformat(NEW)
        if failing:
            await refused()
            await refused(beta=False)
        else:
            await taken("thinking_dropped")

    play(use)


def test_a_mythos_drops_where_the_others_refuse() -> None:
    async def use(talk: Talk) -> None:
        await talk.ask()
        body = talk.next(lambda body: body.pop("system"))
        told = (await talk.create(body))["input_transformations"]
        assert told == changes("thinking_dropped", PREFIX, at(1))
        assert "input_transformations" not in await talk.create(body, beta=False)
        with pytest.raises(anthropic.BadRequestError, match=ELSEWHERE):
            await talk.create(body, behaviour="error")

    play(use, model=MYTHOS)


def test_thinking_after_a_change_is_bound_to_what_was_sent_then() -> None:
    async def use(talk: Talk) -> None:
        await talk.ask()
        talk.sent["system"] = "Be kind."
        for _ in range(2):
            await talk.ask(behaviour="drop_block")
            assert dict(talk.server.thinking_checks[-1].dropped) == {at(1)[0]: PREFIX}
        assert talk.server.thinking_checks[-1].kept == at(3)
        # Without the one that fails, too.
        message = await talk.create(talk.next(lambda body: drop_thinking(body, 1)))
        assert message["input_transformations"] == []
        assert talk.server.thinking_checks[-1].kept == at(3, 5)

    play(use)


def test_thinking_that_is_put_back_fails_what_was_thought_without_it() -> None:
    async def use(talk: Talk) -> None:
        await talk.ask()
        await talk.ask()
        first = talk.sent["messages"][1]["content"].pop(0)
        await talk.ask()
        assert (await talk.create(talk.next()))["input_transformations"] == []

        def put_back(body: JSON) -> None:
            body["messages"][1]["content"].insert(0, first)

        message = await talk.create(talk.next(put_back), behaviour="drop_block")
        assert message["input_transformations"] == changes("thinking_dropped", PREFIX, at(5))
        assert talk.server.thinking_checks[-1].kept == at(1, 3)

    play(use)


def test_what_stands_between_two_thinking_blocks_of_a_message_is_in_front_of_the_second() -> None:
    look = EmulatedCall(name="clock")
    answer = thinks(1, then=thinks(2, then=EmulatedAnswer(thinking="Thought 3.", calls=(look,))))

    async def use(talk: Talk) -> None:
        message = await talk.ask()
        kinds = [block["type"] for block in message["content"]]
        assert kinds == ["thinking", "text", "thinking", "text", "thinking", "tool_use"]
        result = {"type": "tool_result", "tool_use_id": message["content"][-1]["id"]}
        await talk.ask([result | {"content": "Noon."}])
        assert talk.server.thinking_checks[-1].kept == tuple(
            f"messages.1.content.{place}" for place in (0, 2, 4)
        )
        body = talk.next(lambda body: body["messages"][1]["content"][3].update(text="No."))
        told = (await talk.create(body, behaviour="drop_block"))["input_transformations"]
        assert [change["path"] for change in told] == [
            "messages.1.content.4", "messages.3.content.0",
        ]  # fmt: skip
        body = talk.next(lambda body: body["messages"][2]["content"][0].update(content="Dusk."))
        told = (await talk.create(body, behaviour="drop_block"))["input_transformations"]
        assert [change["path"] for change in told] == ["messages.3.content.0"]

    play(use, answer, thinks(4))


def test_a_deferred_tool_counts_from_where_a_result_names_it() -> None:
    async def use(talk: Talk) -> None:
        talk.sent["tools"].append(tool("wind", defer_loading=True))
        message = await talk.ask()
        reference = {"type": "tool_reference", "tool_name": "wind"}
        result = {"type": "tool_result", "tool_use_id": message["content"][-1]["id"]}
        await talk.ask([result | {"content": [reference]}])
        body = talk.next(lambda body: body["tools"][-1].update(description="Winds."))
        told = (await talk.create(body, behaviour="drop_block"))["input_transformations"]
        assert told == changes("thinking_dropped", PREFIX, at(3))

    find = EmulatedAnswer(thinking="Which tool?", calls=(EmulatedCall(name="clock"),))
    play(use, find, thinks(2))


# -- models and accounts -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("before", "after", "is_read"),
    [
        (OPUS, FABLE, True), (FABLE, OPUS, False), (FABLE, MYTHOS, True),
        ("claude-opus-5", OPUS, True), (OPUS, "claude-opus-5", False),
        ("claude-sonnet-5", SONNET, True), ("claude-opus-5", SONNET, False),
        (SONNET, OPUS, False), (SONNET, FABLE, False), (HAIKU, OPUS, True), (OPUS, HAIKU, False),
        ("claude-sonnet-5", "claude-opus-5", False),
    ],
)  # fmt: skip
@pytest.mark.parametrize("since", [NEW, OLD])
def test_a_model_that_cannot_read_thinking_answers_without_it(
    before: str, after: str, is_read: bool, since: str
) -> None:
    async def use(talk: Talk) -> None:
        first = await talk.ask()
        plain = talk.next() | {"model": after}
        drop_thinking(plain, 1)
        without = await talk.create(plain)
        talk.sent["model"] = after
        message = await talk.ask()
        lost = () if is_read else at(1)
        assert message["input_transformations"] == changes("thinking_dropped", MODEL, lost)
        is_billed = sum_input(message) > sum_input(without)
        assert is_billed == is_read
        # Back at the first model all that it can read is there again.
        talk.sent["model"] = before
        await talk.ask()
        kept = talk.server.thinking_checks[-1].kept
        assert kept == (at(1, 3) if load_book().find(f"anthropic:{before}").reads_thinking_of(
            after) else at(1))  # fmt: skip
        assert first["content"][0]["signature"]

    play(use, model=before, since=since)


def sum_input(message: JSON) -> int:
    usage = message["usage"]
    names = ("input_tokens", "cache_read_input_tokens", "cache_creation_input_tokens")
    return sum(int(usage[name]) for name in names)


def test_thinking_of_a_model_that_does_not_bind_has_no_prefix_to_fail() -> None:
    async def use(talk: Talk) -> None:
        await talk.ask()
        body = talk.next(lambda body: body.pop("system")) | {"model": OPUS}
        assert (await talk.create(body, behaviour="error"))["input_transformations"] == []

    play(use, model="claude-opus-5")


@pytest.mark.parametrize(("model", "is_bound"), [(SONNET, True), (HAIKU, True), (OPUS, False)])
def test_some_thinking_stays_with_the_account_that_made_it(model: str, is_bound: bool) -> None:
    async def use(talk: Talk) -> None:
        await talk.ask()
        message = await talk.create(talk.next(), key="key-2", behaviour="error")
        lost = at(1) if is_bound else ()
        assert message["input_transformations"] == changes("thinking_dropped", ACCOUNT, lost)
        # The account goes before the model, and both before the prefix.
        other = talk.next(lambda body: body.update(model=OPUS, system="Be kind."))
        if is_bound:
            message = await talk.create(other, key="key-2", behaviour="error")
            assert message["input_transformations"] == changes("thinking_dropped", ACCOUNT, lost)

    play(use, model=model)


# -- signatures ----------------------------------------------------------------------------------


def tamper(body: JSON) -> None:
    thought = body["messages"][1]["content"][0]
    signed = bytearray(b64decode(thought["signature"]))
    signed[30] ^= 1
    thought["signature"] = b64encode(signed).decode()


@pytest.mark.parametrize(
    "change",
    [
        tamper,
        lambda body: body["messages"][1]["content"][0].update(thinking="Another thought."),
        lambda body: body["messages"][1]["content"][0].update(signature="bGFtaW5h"),
    ],
)
@pytest.mark.parametrize("since", [NEW, OLD])
def test_a_signature_that_was_tampered_with_is_always_refused(
    change: Callable[[JSON], object], since: str
) -> None:
    async def use(talk: Talk) -> None:
        await talk.ask()
        for behaviour in ("", "drop_block"):
            with pytest.raises(anthropic.BadRequestError) as caught:
                await talk.create(talk.next(change), behaviour=behaviour)
            assert "messages.1.content.0: Invalid `signature` in `thinking`" in str(caught.value)
            assert ELSEWHERE not in str(caught.value)

    play(use, since=since)


@pytest.mark.parametrize("display", ["omitted", "redacted"])
def test_thinking_without_words_is_checked_like_any_other(display: Any) -> None:
    async def use(talk: Talk) -> None:
        message = await talk.ask()
        block = message["content"][0]
        if display == "omitted":
            assert (block["type"], block["thinking"]) == ("thinking", "")
        else:
            assert block.keys() == {"type", "data"}
        await talk.ask(behaviour="error")
        assert talk.server.thinking_checks[-1].kept == at(1)
        body = talk.next(lambda body: body.pop("system"))
        told = (await talk.create(body, behaviour="drop_block"))["input_transformations"]
        assert told == changes("thinking_dropped", PREFIX, at(1, 3))
        async with talk.client() as client, client.messages.stream(**controlled(body, "drop_block")
        ) as stream:  # fmt: skip
            streamed = await stream.get_final_message()
        assert streamed.content[0].type == block["type"]

    play(use, *(thinks(number, display=display) for number in range(1, 9)))


# -- what is sent by whom ------------------------------------------------------------------------


def test_tokens_are_counted_under_the_same_check() -> None:
    async def use(talk: Talk) -> None:
        await talk.ask()
        body = talk.next(lambda body: body.pop("system"))
        bare = deepcopy(body)
        drop_thinking(bare, 1)
        without = talk.next(lambda body: drop_thinking(body, 1))
        async with talk.client() as client:

            async def count(body: JSON, behaviour: str, beta: bool = True) -> int:
                fields = controlled(body, behaviour, beta)
                del fields["max_tokens"]
                return (await client.messages.count_tokens(**fields)).input_tokens

            with pytest.raises(anthropic.BadRequestError, match=ELSEWHERE):
                await count(body, "")
            with pytest.raises(anthropic.BadRequestError, match="block_binding: Extra inputs"):
                await count(body, "drop_block", beta=False)
            assert await count(body, "drop_block") == await count(bare, "error")
            assert await count(talk.next(), "error") > await count(without, "error")

    play(use)


def test_lamina_s_client_tells_what_was_dropped_from_the_stream() -> None:
    async def use(talk: Talk) -> None:
        await talk.ask()
        body = controlled(talk.next(lambda body: body.pop("system")), "drop_block")
        target = load_book().find(f"anthropic:{OPUS}")
        it = Asking(talk.server, talk.url, HASTY, 10.0)
        client = it.client(target, "key-1")
        reply = [piece async for piece in client.stream(body)][-1]
        assert reply.transformations == (  # type: ignore[union-attr]
            InputTransformation(kind="thinking_dropped", path=at(1)[0], reason=PREFIX),
        )
        assert isinstance(reply.blocks[0], Thinking)  # type: ignore[union-attr]
        assert await client.count_tokens(body)
        await it.close()

    play(use)


REFUSED: dict[str, tuple[str, JSON, str]] = {
    "no type": (OPUS, {"thinking": {"block_binding": {}}}, "thinking.type: Field required"),
    "a budget": (FABLE, {"thinking": {"type": "enabled", "budget_tokens": 2_000}}, "not supported"),
    "switched off": (OPUS, {"thinking": {"type": "disabled"}}, "not supported for this model"),
    "off for sonnet": (SONNET, {"thinking": {"type": "disabled"}}, "between_tools"),
    "between tools": (OPUS, {"thinking": {"type": "between_tools"}}, "not supported"),
    "bound between tools": (
        SONNET, {"thinking": {"type": "between_tools", "block_binding": {}}},
        "block_binding: Extra inputs are not permitted",
    ),
    "a behaviour nobody knows": (
        OPUS,
        {"thinking": {"type": "adaptive", "block_binding": {"prefix_mismatch_behavior": "ask"}}},
        "Input should be 'error' or 'drop_block'",
    ),
    "a temperature": (OPUS, {"extra_body": {"temperature": 0.5}}, "`temperature` is deprecated"),
    "a top_p": ("claude-sonnet-5", {"extra_body": {"top_p": 0.5}}, "`top_p` is deprecated"),
    "a top_k": (HAIKU, {"extra_body": {"top_k": 5}}, "`top_k` is deprecated"),
    "a call of any tool": (OPUS, {"tool_choice": {"type": "any"}}, "is not supported"),
    "a call of one tool": (
        MYTHOS, {"tool_choice": {"type": "tool", "name": "tide"}}, "is not supported",
    ),
    "a prefill": (
        SONNET,
        {"messages": [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Well"}]},
        "does not support assistant message prefill",
    ),
}  # fmt: skip
TAKEN: dict[str, tuple[str, JSON]] = {
    "adaptive": (OPUS, {"thinking": {"type": "adaptive"}}),
    "no behaviour": (OPUS, {"thinking": {"type": "adaptive", "block_binding": {}}}),
    "off for haiku": (HAIKU, {"thinking": {"type": "disabled"}}),
    "between tools for sonnet": (SONNET, {"thinking": {"type": "between_tools"}}),
    "the usual temperature": (OPUS, {"extra_body": {"temperature": 1}}),
    "a call of any tool of haiku": (HAIKU, {"tool_choice": {"type": "any"}}),
    "bound at a model that does not bind": (
        "claude-opus-5", {"thinking": {"type": "adaptive", "block_binding": {}}},
    ),
}  # fmt: skip


@pytest.mark.parametrize("what", REFUSED)
def test_what_models_that_bind_their_thinking_refuse(what: str) -> None:
    model, fields, words = REFUSED[what]

    async def use(talk: Talk) -> None:
        with pytest.raises(anthropic.BadRequestError) as caught:
            await talk.create(talk.next() | {"model": model} | fields)
        assert words in str(caught.value)

    play(use)


@pytest.mark.parametrize("what", TAKEN)
def test_what_they_take(what: str) -> None:
    model, fields = TAKEN[what]

    async def use(talk: Talk) -> None:
        message = await talk.create(talk.next() | {"model": model} | fields)
        assert message["input_transformations"] == []
        assert "input_transformations" not in await talk.create(talk.next(), beta=False)

    play(use)
