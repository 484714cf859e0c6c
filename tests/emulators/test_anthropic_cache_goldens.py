"""Anthropic's cache by its own rules: what is read and what is written, from wire bodies alone.

Written by hand from the published rules.
"""

from base64 import b64encode

import pytest
from msgspec.structs import replace
from tests.adapters.providers.strict import png
from tests.emulators.anthropic_bodies import (
    BOOK,
    HOUR,
    JSON,
    MARK,
    PER_MESSAGE,
    SONNET,
    Server,
    assistant,
    body,
    figures,
    layered,
    sizes,
    text,
    tool,
    user,
    words,
)

from lamina.emulators.anthropic.checks import check_body
from lamina.emulators.anthropic.refusals import AnthropicRefusal

# -- the minimum ---------------------------------------------------------------------------------


def test_a_prefix_of_the_minimum_is_written_and_read() -> None:
    server = Server()
    request = body(user(text(1_024 - PER_MESSAGE, MARK)))
    assert figures(server.send(request)) == (0, 1_024, 0)
    assert figures(server.send(request)) == (1_024, 0, 0)


def test_one_token_below_the_minimum_nothing_is_cached_and_nothing_is_said() -> None:
    server = Server()
    request = body(user(text(1_023 - PER_MESSAGE, MARK)))
    for _ in range(2):
        account = server.send(request)
        assert figures(account) == (0, 0, 1_023)
        assert account.missed == "below the minimum of 1,024 tokens"


@pytest.mark.parametrize(
    ("model", "minimum"),
    [
        ("claude-opus-5", 512), ("claude-fable-5", 512), ("claude-mythos-5-1", 512),
        ("claude-opus-4-8", 1_024), ("claude-sonnet-5", 1_024), ("claude-sonnet-4-6", 1_024),
        ("claude-opus-4-1", 1_024), ("claude-opus-4-7", 2_048), ("claude-3-5-haiku", 2_048),
        ("claude-opus-4-5", 4_096), ("claude-opus-4-6", 4_096), ("claude-haiku-4-5", 4_096),
    ],
)  # fmt: skip
def test_minimums_are_those_of_the_model(model: str, minimum: int) -> None:
    server = Server(replace(BOOK.find(f"anthropic:{model}"), token_factor=1.0))
    enough = body(user(text(minimum - PER_MESSAGE, MARK)), model=model)
    short = body(user(text(minimum - PER_MESSAGE - 1, MARK)), model=model)
    assert server.send(enough).written == minimum
    assert server.send(short).written == 0


def test_without_a_marker_nothing_is_cached() -> None:
    server = Server()
    for _ in range(2):
        account = server.send(body(user(text(5_000))))
        assert figures(account) == (0, 0, 5_000 + PER_MESSAGE)
        assert account.missed == "no marker"


# -- what a change loses -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("changed", "kept", "missed"),
    [
        (layered(), 2, ""),
        (layered(about=1_101), None, "tools changed"),
        (layered(system=" two"), 0, "system changed"),
        (layered(said=" two"), 1, "messages changed"),
        (layered(tool_choice={"type": "any"}), 1, "messages changed"),
        (layered(model="claude-sonnet-4-6"), None, "model changed"),
    ],
    ids=["nothing", "tools", "system", "message", "tool_choice", "model"],
)
def test_a_change_loses_everything_after_it(changed: JSON, kept: int | None, missed: str) -> None:
    server = Server()
    server.send(layered())
    account = server.send(changed)
    assert account.read == (0 if kept is None else sizes()[kept])
    assert account.missed == missed


def test_one_changed_byte_in_the_middle_of_a_message_loses_that_block_and_what_follows() -> None:
    server = Server()
    first = [text(1_500, MARK), text(1_000), text(1_000, MARK)]
    server.send(body(user(*first)))
    other = text(" one" * 999 + " two")
    account = server.send(body(user(first[0], other, first[2])))
    assert figures(account) == (1_500 + PER_MESSAGE, 2_000, 0)


def test_a_first_image_keeps_tools_and_system_only() -> None:
    server = Server()
    server.send(layered())
    request = layered()
    source = {"type": "base64", "media_type": "image/png", "data": b64encode(png()).decode()}
    request["messages"][0]["content"].append({"type": "image", "source": source})
    account = server.send(request)
    assert account.read == sizes()[1]
    assert account.missed == "messages changed"


def test_a_system_of_a_string_is_one_block() -> None:
    server = Server()
    server.send(body(user(text(1)), system=[text(1_100, MARK)]))
    account = server.send(body(user(text("Hi", MARK)), system=words(1_100)))
    assert account.read == 1_100


# -- markers -------------------------------------------------------------------------------------


def test_a_marker_on_what_changes_every_time_writes_and_never_reads() -> None:
    server = Server()
    for number in range(3):
        account = server.send(body(user(text(2_000), text(f"It is {number} o'clock.", MARK))))
        assert account.read == 0
        assert account.written > 2_000


def test_a_marker_on_the_last_cached_block_reads_in_front_of_an_uncached_tail() -> None:
    server = Server()
    for number in range(3):
        account = server.send(body(user(text(2_000, MARK), text(f"It is {number} o'clock."))))
        assert account.read == (2_000 + PER_MESSAGE if number else 0)
        assert account.written == (0 if number else 2_000 + PER_MESSAGE)


@pytest.mark.parametrize(("behind", "found"), [(18, True), (19, True), (20, False), (30, False)])
def test_a_marker_looks_back_over_twenty_blocks_itself_included(behind: int, found: bool) -> None:
    server = Server()
    head = text(1_100)
    server.send(body(user(head | {"cache_control": MARK})))
    tail = [text(f"Block {number}.") for number in range(behind)]
    tail[-1] = tail[-1] | {"cache_control": MARK}
    account = server.send(body(user(head, *tail)))
    assert account.read == (1_100 + PER_MESSAGE if found else 0)
    assert account.missed == ("" if found else "more than 20 blocks before a marker")


def test_a_second_marker_reaches_what_the_last_one_cannot() -> None:
    server = Server()
    head = text(1_100, MARK)
    server.send(body(user(head)))
    tail = [text(f"Block {number}.") for number in range(40)]
    tail[-1] = tail[-1] | {"cache_control": MARK}
    account = server.send(body(user(head, *tail)))
    assert account.read == 1_100 + PER_MESSAGE
    assert account.fresh == 0


def calls(count: int) -> tuple[list[JSON], list[JSON]]:
    ids = [f"toolu_{number}" for number in range(count)]
    return (
        [{"type": "tool_use", "id": each, "name": "clock", "input": {}} for each in ids],
        [{"type": "tool_result", "tool_use_id": each, "content": "noon"} for each in ids],
    )


def test_runs_of_calls_and_of_results_count_once() -> None:
    server = Server()
    used, results = calls(18)
    tools = [tool(about=5)]
    server.send(body(user(text(1_100, MARK)), tools=tools))
    results[-1] = results[-1] | {"cache_control": MARK}
    account = server.send(
        body(user(text(1_100)), assistant(text("Well."), *used), user(*results), tools=tools)
    )
    assert account.read > 1_100
    assert account.missed == ""


def test_words_between_calls_end_a_run() -> None:
    server = Server()
    used, results = calls(18)
    mixed = [block for each in used for block in (text("And"), each)]
    tools = [tool(about=5)]
    server.send(body(user(text(1_100, MARK)), tools=tools))
    results[-1] = results[-1] | {"cache_control": MARK}
    account = server.send(body(user(text(1_100)), assistant(*mixed), user(*results), tools=tools))
    assert account.read == 0


def refused(request: JSON) -> str:
    with pytest.raises(AnthropicRefusal) as caught:
        check_body(request, SONNET)
    return str(caught.value)


def test_five_markers_are_refused() -> None:
    four = body(user(*(text(f"Part {n}.", MARK) for n in range(4))))
    check_body(four, SONNET)
    five = body(user(*(text(f"Part {n}.", MARK) for n in range(4))), system=[text("Hi", MARK)])
    assert refused(five) == "A maximum of 4 blocks with cache_control may be provided. Found 5."


def test_the_automatic_marker_takes_one_of_the_four() -> None:
    three = [text(f"Part {n}.", MARK) for n in range(3)]
    check_body(body(user(*three, text("End.")), cache_control=MARK), SONNET)
    request = body(user(*three, text("Four.", MARK), text("End.")), cache_control=MARK)
    assert "Found 5" in refused(request)


def test_the_automatic_marker_stands_on_the_last_block_and_moves_ahead() -> None:
    server = Server()
    first = body(user(text(1_100)), cache_control=MARK)
    assert server.send(first).written == 1_100 + PER_MESSAGE
    second = body(user(text(1_100)), assistant(text(50)), user(text(70)), cache_control=MARK)
    assert figures(server.send(second)) == (1_100 + PER_MESSAGE, 120 + 2 * PER_MESSAGE, 0)


def test_thinking_and_blank_text_take_no_marker() -> None:
    thought = {"type": "thinking", "thinking": "Hm.", "signature": "s", "cache_control": MARK}
    assert "cache_control: Extra inputs" in refused(
        body(user(text("Hi")), assistant(thought, text("So.")), user(text("Go on.")))
    )
    assert "cache_control cannot be set for empty text blocks" in refused(
        body(user(text("", MARK)))
    )


# -- lifetimes -----------------------------------------------------------------------------------


def test_an_entry_lives_five_minutes_from_the_start_of_its_request() -> None:
    request = body(user(text(1_100, MARK)))
    server = Server()
    server.send(request)
    assert server.send(request, after=300.0).read == 1_100 + PER_MESSAGE
    server = Server()
    server.send(request)
    account = server.send(request, after=301.0)
    assert figures(account) == (0, 1_100 + PER_MESSAGE, 0)
    assert account.missed == "expired 1 s ago"


def test_a_read_refreshes_what_it_read() -> None:
    server = Server()
    request = body(user(text(1_100, MARK)))
    for _ in range(5):
        server.send(request, after=250.0)
    assert server.send(request, after=250.0).read == 1_100 + PER_MESSAGE


def test_an_hour_is_an_hour() -> None:
    server = Server()
    request = body(user(text(1_100, HOUR)))
    account = server.send(request)
    assert (account.written, account.written_long) == (1_100 + PER_MESSAGE, 1_100 + PER_MESSAGE)
    assert server.send(request, after=3_600.0).read == 1_100 + PER_MESSAGE
    assert server.send(request, after=3_601.0).read == 0


def test_a_longer_lifetime_must_stand_in_front_of_a_shorter() -> None:
    good = body(user(text("Hi", MARK)), system=[text("Be brief.", HOUR)])
    check_body(good, SONNET)
    bad = body(user(text("Hi", HOUR)), system=[text("Be brief.", MARK)])
    assert refused(bad) == (
        "messages.0.content.0.cache_control.ttl: a ttl='1h' cache_control block must not come "
        "after a ttl='5m' cache_control block. Note that blocks are processed in the following "
        "order: `tools`, `system`, `messages`."
    )
    last = body(user(text("Hi")), system=[text("Be brief.", MARK)], cache_control=HOUR)
    assert "must not come after" in refused(last)


def test_with_both_lifetimes_each_part_is_written_and_lives_by_its_own() -> None:
    server = Server()
    request = body(user(text(500, MARK)), system=[text(2_000, HOUR)])
    account = server.send(request)
    assert (account.written, account.written_long) == (2_500 + PER_MESSAGE, 2_000)
    account = server.send(request, after=301.0)
    assert figures(account) == (2_000, 500 + PER_MESSAGE, 0)
    assert (account.written_long, account.missed) == (0, "expired 1 s ago")


def test_an_entry_can_be_read_once_the_response_to_its_request_starts() -> None:
    server = Server()
    request = body(user(text(1_100, MARK)))
    first = server.send(request, answered=False)
    account = server.send(request, answered=False)
    assert (account.read, account.missed) == (0, "still being written")
    server.cache.begin(first)
    assert server.send(request).read == 1_100 + PER_MESSAGE
