"""How eagerly items are chosen, by one word."""

from typing import get_args

from lamina.errors import InvalidSetting
from lamina.values.selection import Preset, SearchSettings

_PRESETS: dict[str, SearchSettings] = {
    "conservative": SearchSettings(top_k=10, top_n=3, include_score=0.8, floor=0.25),
    "normal": SearchSettings(),
    "aggressive": SearchSettings(
        top_k=50,
        top_n=10,
        include_score=0.6,
        floor=0.05,
        expansion_depth=1,
        expansion_threshold=0.65,
        expansion_top_n=5,
    ),
}


def preset(name: Preset) -> SearchSettings:
    """The settings that go by this name.

    Raises:
        InvalidSetting: there is no such preset.
    """
    if name not in _PRESETS:
        raise InvalidSetting("preset", name, f"is not one of {', '.join(get_args(Preset))}")
    return _PRESETS[name]
