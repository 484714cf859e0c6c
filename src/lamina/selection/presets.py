"""How eagerly items are chosen, by one word.

Law: of one question, the more eager takes all that the less eager takes. That is so because they
agree on the floor and on what is sure: with a lower floor other items would be claimed by parts of
the question, and push out what fits it as a whole.
"""

from typing import get_args

from lamina.errors import InvalidSetting
from lamina.values.selection import Preset, SearchSettings

_PRESETS: dict[str, SearchSettings] = {
    "conservative": SearchSettings(top_k=10, top_n=3),
    "normal": SearchSettings(),
    "aggressive": SearchSettings(
        top_k=50,
        top_n=10,
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
