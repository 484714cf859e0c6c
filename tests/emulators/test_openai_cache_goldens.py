"""What OpenAI's prompt cache does, case by case, from what OpenAI says of it."""

from typing import Any

import pytest
from msgspec.structs import replace

from lamina.adapters.providers.model_book import load_book
from lamina.core.values.settings import Target
from lamina.emulators.openai.cache import OpenAICache, OpenAICacheUse

JSON = dict[str, Any]
BEFORE, SINCE = "gpt-4o", "gpt-5.6"
MARK = {"prompt_cache_breakpoint": {"mode": "explicit"}}
EXPLICIT = {"prompt_cache_options": {"mode": "explicit", "ttl": "30m"}}
TOOL: JSON = {
    "type": "function",
    "function": {"name": "clock", "parameters": {"type": "object", "properties": {}}},
}


def words(count: int, seed: str = "w") -> str:
    """A text of one token a word, more or less, that no other seed begins alike."""
    return " ".join(f"{seed}{number % 10}" for number in range(count // 2))


def text(role: str, *parts: str, marked: bool = False) -> JSON:
    listed: list[JSON] = [{"type": "text", "text": part} for part in parts]
    if marked:
        listed[-1] |= MARK
    return {"role": role, "content": listed}


def body(*messages: JSON, model: str = BEFORE, **fields: Any) -> JSON:
    return {"model": model, "messages": list(messages), "prompt_cache_key": "k", **fields}


def target_of(request: JSON) -> Target:
    return load_book().find(f"openai:{request['model']}")


class Asking:
    """A cache, and a clock of its own."""

    def __init__(self, **given: Any) -> None:
        self.cache = OpenAICache(**given)
        self.now = 1_000.0

    def __call__(self, request: JSON, after: float = 1.0) -> OpenAICacheUse:
        self.now += after
        return self.cache.use(request, target_of(request), self.now)


@pytest.fixture
def ask() -> Asking:
    return Asking()


SYSTEM = text("system", words(2_000))
ASKED = text("user", "What time is it?")
ANSWERED = text("assistant", "Noon.")
NEXT = text("user", "And now?")


# -- before GPT-5.6: any prefix, in steps of 128 --------------------------------------------------


def test_the_first_request_finds_nothing_and_writes_for_free(ask: Asking) -> None:
    account = ask(body(SYSTEM, ASKED))
    assert account.tokens > 2_000
    assert (account.cached, account.written) == (0, 0)
    assert account.missed == "nothing_sent_before"


def test_a_prefix_is_found_in_steps_of_128_tokens(ask: Asking) -> None:
    first = ask(body(SYSTEM, ASKED))
    second = ask(body(SYSTEM, ASKED, ANSWERED, NEXT))
    assert second.cached % 128 == 0
    assert 0 <= first.tokens - second.cached < 128 + 8
    assert second.missed == ""


def test_below_1024_tokens_nothing_is_kept(ask: Asking) -> None:
    small = text("system", words(900))
    ask(body(small, ASKED))
    again = ask(body(small, ASKED))
    assert again.tokens < 1_024
    assert (again.cached, again.missed) == (0, "below_minimum")
    # What follows is long enough, but agrees in less than 1,024 tokens with anything sent.
    grown = ask(body(small, ASKED, ANSWERED, text("user", words(600, "n"))))
    assert (grown.cached, grown.missed) == (0, "below_minimum")


@pytest.mark.parametrize(
    ("where", "changed"),
    [
        ("tools", {"tools": [TOOL | {"function": TOOL["function"] | {"name": "clocks"}}]}),
        ("tools", {"tools": [TOOL, TOOL | {"function": TOOL["function"] | {"name": "other"}}]}),
        ("tools", {"tools": []}),
        ("system", {"messages": [text("system", "." + words(2_000)), ASKED]}),
    ],
)
def test_one_changed_byte_in_front_loses_everything(ask: Asking, where: str, changed: JSON) -> None:
    request = body(SYSTEM, ASKED, tools=[TOOL])
    ask(request)
    account = ask(request | changed)
    assert account.cached < 1_024
    expected = "tools_changed" if where == "tools" else "input_changed: message 0, system"
    assert account.missed == expected
    # The other prefix is still there.
    assert ask(request).cached >= 1_920


def test_one_changed_byte_in_a_message_keeps_what_stands_before_it(ask: Asking) -> None:
    long = text("user", words(1_000, "q"))
    whole = ask(body(SYSTEM, ASKED, ANSWERED, long))
    edited = text("user", "!" + words(1_000, "q"))
    account = ask(body(SYSTEM, ASKED, ANSWERED, edited))
    assert 1_920 <= account.cached < 2_100 < whole.tokens
    assert account.missed == "input_changed: message 3, user"


def test_a_change_in_the_middle_of_a_text_keeps_its_beginning(ask: Asking) -> None:
    ask(body(text("system", words(4_000)), ASKED))
    account = ask(body(text("system", words(3_000) + " changed " + words(990)), ASKED))
    assert 2_900 < account.cached <= 3_072


def test_a_prefix_is_lost_after_minutes_and_kept_by_use(ask: Asking) -> None:
    request = body(SYSTEM, ASKED)
    ask(request)
    for _ in range(4):
        assert ask(request, after=290).cached >= 1_920
    expired = ask(request, after=301)
    assert (expired.cached, expired.missed) == (0, "expired")


@pytest.mark.parametrize(
    ("changed", "reason"),
    [
        ({"model": "gpt-4.1"}, "model_changed"),
        ({"prompt_cache_key": "other"}, "prompt_cache_key_changed"),
        ({"response_format": {"type": "json_object"}}, "text_format_changed"),
        ({"reasoning_effort": "high"}, "reasoning_effort_changed"),
        ({"verbosity": "low"}, "verbosity_changed"),
    ],
)
def test_settings_that_are_part_of_the_prefix(ask: Asking, changed: JSON, reason: str) -> None:
    request = body(SYSTEM, ASKED)
    ask(request)
    account = ask(request | changed)
    assert (account.cached, account.missed) == (0, reason)


@pytest.mark.parametrize("model", [BEFORE, SINCE])
@pytest.mark.parametrize(
    "changed",
    [
        {
            "tool_choice": {
                "type": "allowed_tools",
                "allowed_tools": {
                    "mode": "auto",
                    "tools": [{"type": "function", "function": {"name": "clock"}}],
                },
            }
        },
        {"tool_choice": "none"},
        {"temperature": 0.5},
        {"max_completion_tokens": 9},
        {"stream": True, "stream_options": {"include_usage": True}},
    ],
)
def test_what_is_chosen_among_stable_tools_does_not_break_the_prefix(
    ask: Asking, model: str, changed: JSON
) -> None:
    request = body(SYSTEM, ASKED, model=model, tools=[TOOL])
    first = ask(request)
    again = ask(request | changed)
    assert again.cached >= first.tokens - 128
    assert again.missed == ""


def test_one_text_is_the_same_as_a_string_and_as_a_part(ask: Asking) -> None:
    ask(body(SYSTEM, ASKED))
    plain = {"role": "system", "content": SYSTEM["content"][0]["text"]}
    assert ask(body(plain, ASKED)).cached >= 1_920


def test_more_requests_a_minute_than_a_machine_takes_go_to_another() -> None:
    ask = Asking(per_minute=15)
    request = body(SYSTEM, ASKED)
    cached = [ask(request).cached for _ in range(17)]
    assert cached[0] == 0
    assert all(count >= 1_920 for count in cached[1:15])
    # The sixteenth is new to the other machine, the next one finds it there.
    assert cached[15] == 0
    assert cached[16] >= 1_920
    # A minute later the first one has room again.
    assert ask(request, after=61).cached >= 1_920


def test_pictures_are_part_of_the_prefix(ask: Asking) -> None:
    def looking(data: str) -> JSON:
        part = {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{data}"}}
        return {"role": "user", "content": [part, {"type": "text", "text": words(1_500)}]}

    ask(body(SYSTEM, looking("AAAA")))
    assert ask(body(SYSTEM, looking("AAAA"))).cached >= 3_000
    other = ask(body(SYSTEM, looking("BBBB")))
    assert 1_920 <= other.cached < 2_100


# -- from GPT-5.6 on: at breakpoints ---------------------------------------------------------------


def since(*messages: JSON, **fields: Any) -> JSON:
    return body(*messages, model=SINCE, **(EXPLICIT | fields))


MARKED_SYSTEM = text("system", words(2_000), marked=True)
MARKED_ASKED = text("user", "What time is it?", marked=True)
MARKED_NEXT = text("user", "And now?", marked=True)


def test_explicit_mode_without_a_breakpoint_caches_nothing(ask: Asking) -> None:
    request = since(SYSTEM, ASKED)
    assert ask(request).written == 0
    account = ask(request)
    assert (account.cached, account.written, account.missed) == (0, 0, "no_breakpoint")


def test_a_breakpoint_is_written_once_and_read_to_the_token(ask: Asking) -> None:
    first = ask(since(MARKED_SYSTEM, ASKED))
    assert first.cached == 0
    assert first.written > 2_000
    second = ask(since(MARKED_SYSTEM, NEXT))
    assert (second.cached, second.written) == (first.written, 0)
    # The boundary is not rounded to a block.
    assert second.cached % 128


def test_what_was_written_is_found_only_where_the_request_marks_it_again(ask: Asking) -> None:
    first = ask(since(MARKED_SYSTEM, MARKED_ASKED))
    unmarked = ask(since(MARKED_SYSTEM, ASKED, ANSWERED, MARKED_NEXT))
    assert unmarked.cached < first.written
    assert unmarked.cached + unmarked.written > first.written
    marked = ask(since(MARKED_SYSTEM, MARKED_ASKED, ANSWERED, NEXT))
    assert (marked.cached, marked.written) == (first.written, 0)


def test_only_the_tokens_behind_what_was_read_are_written(ask: Asking) -> None:
    first = ask(since(MARKED_SYSTEM, MARKED_ASKED))
    second = ask(since(MARKED_SYSTEM, MARKED_ASKED, ANSWERED, MARKED_NEXT))
    assert second.cached == first.written
    assert 0 < second.written < 30
    assert second.cached + second.written <= second.tokens


def test_a_breakpoint_below_1024_tokens_is_none(ask: Asking) -> None:
    request = since(text("system", words(900), marked=True), ASKED)
    assert ask(request).written == 0
    account = ask(request)
    assert (account.cached, account.written, account.missed) == (0, 0, "below_minimum")


def test_four_breakpoints_are_written_and_they_are_the_latest(ask: Asking) -> None:
    messages = [text("user", words(1_200, f"m{number}"), marked=True) for number in range(5)]
    ask(since(*messages))
    lost = ask(since(messages[0], text("user", "Else?")))
    assert lost.cached == 0
    kept = Asking()
    kept(since(*messages))
    assert kept(since(*messages[:2], text("user", "Else?"))).cached > 2_400


def test_in_implicit_mode_one_of_the_four_is_the_latest_message(ask: Asking) -> None:
    messages = [text("user", words(1_200, f"m{number}"), marked=True) for number in range(4)]
    request = body(*messages, text("user", "Well?"), model=SINCE)
    account = ask(request)
    assert account.written > 4_800
    assert ask(body(messages[0], ASKED, model=SINCE)).cached == 0
    assert ask(request).cached == account.written


def test_implicit_mode_goes_on_from_the_last_message_of_the_request_before(ask: Asking) -> None:
    first = ask(body(SYSTEM, ASKED, model=SINCE))
    assert first.written > 2_000
    second = ask(body(SYSTEM, ASKED, ANSWERED, NEXT, model=SINCE))
    assert second.cached == first.written
    assert second.written < 30


def test_implicit_mode_does_not_fall_back_to_a_prefix_that_was_not_marked(ask: Asking) -> None:
    ask(body(SYSTEM, text("user", words(1_200, "a")), model=SINCE))
    other = ask(body(SYSTEM, text("user", words(1_200, "b")), model=SINCE))
    assert other.cached == 0
    assert other.missed == "input_changed: message 1, user"


def test_the_latest_80_breakpoints_are_looked_at(ask: Asking) -> None:
    first = ask(since(MARKED_SYSTEM))
    near = [text("user", f"Question {number}?", marked=True) for number in range(79)]
    assert ask(since(MARKED_SYSTEM, *near)).cached == first.written
    far = [text("user", f"Other {number}?", marked=True) for number in range(80)]
    assert ask(since(MARKED_SYSTEM, *far)).cached == 0


def test_entries_live_for_half_an_hour_from_their_last_use(ask: Asking) -> None:
    request = since(MARKED_SYSTEM, ASKED)
    written = ask(request).written
    assert ask(request, after=1_790).cached == written
    assert ask(request, after=1_790).cached == written
    expired = ask(request, after=1_801)
    assert (expired.cached, expired.written, expired.missed) == (0, written, "expired")


def test_a_run_of_tool_results_is_one_ending() -> None:
    calls = [
        {"id": f"c{n}", "type": "function", "function": {"name": "clock", "arguments": "{}"}}
        for n in range(18)
    ]
    results = [
        {"role": "tool", "tool_call_id": f"c{n}", "content": f"It is {n}."} for n in range(18)
    ]
    called = {"role": "assistant", "content": None, "tool_calls": calls}
    loop = [SYSTEM, ASKED, called, *results]
    ask = Asking()
    first = ask(body(*loop, model=SINCE))
    assert ask(body(*loop, ANSWERED, NEXT, model=SINCE)).cached == first.written


# -- servers that keep prefixes themselves ---------------------------------------------------------


def test_vllm_keeps_blocks_of_16_tokens_and_computes_the_last_one_anew() -> None:
    target = load_book().find("compatible:vllm/some-model")
    target = replace(target, cache=replace(target.cache, step=16))
    cache = OpenAICache()
    request = {"model": "vllm/some-model", "messages": [text("user", words(100))]}
    first = cache.use(request, target, 1.0)
    again = cache.use(request, target, 100_000.0)
    assert first.cached == 0
    assert again.cached == (again.tokens - 1) // 16 * 16
