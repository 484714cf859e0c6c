"""What Anthropic's cache costs, what its diagnoses say, and what its rules would allow."""

import pytest
from tests.emulators.anthropic_bodies import (
    HAIKU,
    HOUR,
    JSON,
    MARK,
    PER_MESSAGE,
    SONNET,
    Server,
    body,
    layered,
    sizes,
    text,
    user,
)

from lamina.core.ledger import cost_of


def test_writing_costs_a_quarter_more_an_hour_twice_as_much_and_reading_a_tenth() -> None:
    def cost(mark: JSON, *, again: bool) -> float | None:
        server = Server()
        request = body(user(text(1_000_000 - PER_MESSAGE, mark)))
        account = server.send(request)
        return cost_of((server.send(request) if again else account).usage(output=0), SONNET)

    assert SONNET.prices is not None
    price = SONNET.prices.tiers[0].input
    assert cost(MARK, again=False) == pytest.approx(1.25 * price)
    assert cost(HOUR, again=False) == pytest.approx(2.0 * price)
    assert cost(MARK, again=True) == pytest.approx(0.1 * price)


@pytest.mark.parametrize(
    ("changed", "reason"),
    [
        (layered(), None),
        (layered(about=1_101), "tools_changed"),
        (layered(system=" two"), "system_changed"),
        (layered(said=" two"), "messages_changed"),
        (layered(tool_choice={"type": "any"}), "unavailable"),
        (layered(model="claude-sonnet-4-6"), "model_changed"),
    ],
    ids=["nothing", "tools", "system", "message", "tool_choice", "model"],
)
def test_a_diagnosis_says_what_changed_since_the_message_it_names(
    changed: JSON, reason: str | None
) -> None:
    server = Server()
    first = server.send(layered(diagnostics={"previous_message_id": None}))
    assert server.cache.diagnose(first) is None
    server.cache.keep_fingerprint("msg_1", first)
    account = server.send(changed | {"diagnostics": {"previous_message_id": "msg_1"}})
    said = server.cache.diagnose(account)
    assert (said and said["cache_miss_reason"]["type"]) == reason
    if reason and reason != "unavailable":
        assert said
        missed = said["cache_miss_reason"]["cache_missed_input_tokens"]
        assert missed == sizes()[2] - account.read


def test_a_diagnosis_of_an_unknown_message_says_so() -> None:
    server = Server()
    account = server.send(layered(diagnostics={"previous_message_id": "msg_none"}))
    said = server.cache.diagnose(account)
    assert said == {"cache_miss_reason": {"type": "previous_message_not_found"}}


def test_what_the_rules_allow_is_the_longest_prefix_that_stood_before() -> None:
    server = Server()
    unmarked = body(user(text(1_100), text(50)))
    server.send(unmarked)
    account = server.send(body(user(text(1_100), text(51))))
    assert (account.read, account.reachable) == (0, 1_100 + PER_MESSAGE)
    assert server.send(unmarked, after=301.0).reachable == 0
    assert Server(HAIKU).send(unmarked | {"model": "claude-haiku-4-5"}).reachable == 0
