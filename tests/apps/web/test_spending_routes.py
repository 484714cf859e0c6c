"""What was spent, over HTTP."""

import pytest
from tests.apps.web.served_house import ServedHouse, refused, told


def test_what_a_session_cost_is_what_the_account_says(house: ServedHouse) -> None:
    session = house.begin()
    house.ask(session, "When?")
    house.ask(session, "And then?")
    own = house.get(session, "/spending")
    charged = sum(row.cost or 0 for row in house.vendor.emulator.report.rows)
    assert own["cost"] == pytest.approx(charged)
    assert own["total"]["spent"] == pytest.approx(charged)
    assert own["total"]["requests"] == 2
    assert [row["name"] for row in own["rows"]] == ["openai:gpt-5"]
    other = house.get(house.begin(), "/spending")
    assert (other["total"]["requests"], other["rows"]) == (0, [])


def test_everything_is_summed_by_day_model_and_session(
    house: ServedHouse, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = house.begin(), house.begin()
    house.ask(first, "When?")
    house.ask(second, "Where?")
    monkeypatch.setenv("LAMINA_SPEND_DAY", "5")
    for by, rows in (("day", 1), ("model", 1), ("session", 2)):
        page = told(house.client.get("/api/spending", params={"by": by}))
        assert len(page["report"]["rows"]) == rows
        assert page["report"]["total"]["requests"] == 2
        assert page["day_limit"] == 5
        assert page["spent_today"] == pytest.approx(page["report"]["total"]["spent"])
    assert page["names"] == {first: "When?", second: "Where?"}
    assert refused(house.client.get("/api/spending", params={"since": "soon"})) == (400, "usage")
    assert refused(house.client.get("/api/spending", params={"by": "mood"})) == (422, "invalid")


def test_limits_of_a_session_and_of_the_machine_count_both(
    house: ServedHouse, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = house.begin(settings={"spend_session": 2.5})
    monkeypatch.setenv("LAMINA_SPEND_DAY", "5")
    own = house.get(session, "/spending")
    assert (own["limit_session"], own["limit_day"]) == (2.5, 5.0)
