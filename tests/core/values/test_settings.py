from typing import Any

import pytest

from lamina.core.values.envelope import Options
from lamina.core.values.settings import Settings
from lamina.errors import InvalidSetting


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("window", -1),
        ("output_reserve", -1),
        ("attachment_limit", -5),
        ("history_messages", -1),
        ("cache_lifetime_s", -0.5),
        ("prune_to", 0.0),
        ("prune_to", 1.5),
        ("prune_recent", float("nan")),
    ],
)
def test_a_setting_out_of_range_is_refused_by_name_when_it_is_made(name: str, value: Any) -> None:
    with pytest.raises(InvalidSetting) as caught:
        Settings(**{name: value})
    assert caught.value.name == name


@pytest.mark.parametrize(
    ("name", "value"), [("temperature", -0.1), ("temperature", float("inf")), ("max_tokens", -1)]
)
def test_an_option_out_of_range_is_refused_by_name(name: str, value: Any) -> None:
    with pytest.raises(InvalidSetting) as caught:
        Options(**{name: value})
    assert caught.value.name == name
