"""Reads an agent's settings, by the names that sessions use.

Law: an invalid setting affects no other.
"""

from difflib import get_close_matches
from types import NoneType
from typing import Any, get_args

import msgspec
from msgspec.structs import fields

from lamina.adapters.agents.agent_draft import AgentDraft
from lamina.adapters.agents.fields import Field, Sheet, number_of
from lamina.core.values.envelope import Options
from lamina.core.values.selection import Preset, SearchSettings
from lamina.core.values.settings import Settings, require_usable
from lamina.errors import InvalidSetting, LaminaError

PRESETS: tuple[str, ...] = get_args(Preset)
SEARCHES = ("guide_search", "tool_search")
_SEARCH_FIELDS = {info.name for info in fields(SearchSettings)}
_OPTIONS = {info.name for info in fields(Options)}
_WORDS: dict[Any, str] = {
    int: "a whole number", float: "a number", str: "a text", bool: "true or false",
}  # fmt: skip
# Only a person decides about safety: an agent may come from anywhere.
_PERSONS = ("web", "allow_hosts", "secrets", "spend_unknown", "ask_above_cost")
_SETTINGS = {info.name for info in fields(Settings)} - set(_PERSONS)


def read_settings(draft: AgentDraft, sheet: Sheet) -> None:
    """Read a settings object."""
    for name, field in sheet.entries.items():
        if field.data is not None:
            keep_setting(draft, sheet.path, name, field)


def keep_setting(draft: AgentDraft, path: str, name: str, field: Field) -> None:
    """Keep a setting or an option if it exists and its value is valid."""
    if name in SEARCHES:
        draft.settings[name] = read_search(draft, path, name, field)
    elif name in _OPTIONS:
        _keep(draft.options, draft, path, name, field, Options)
    elif name in _SETTINGS:
        _keep(draft.settings, draft, path, name, field, Settings)
    else:
        draft.problems.error(path, _no_setting(name), field.line)


def find_problem(name: str, value: Any) -> str:
    """Return the reason why an agent cannot have this setting or value; empty if it can."""
    whole, dot, part = name.partition(".")
    if whole in SEARCHES and dot:
        return _no_part(part) or _problem(part, value, SearchSettings)
    if whole in SEARCHES:
        is_fine = isinstance(value, bool) or value in PRESETS
        return "" if is_fine else f"has to be one of {', '.join(PRESETS)}, not {value!r}"
    if name not in _OPTIONS | _SETTINGS:
        return _no_setting(name)
    return _problem(name, value, Options if name in _OPTIONS else Settings)


def _no_setting(name: str) -> str:
    if name in _PERSONS:
        return f"{name} is for a person to say, not for an agent"
    near = get_close_matches(name, sorted(_OPTIONS | _SETTINGS), n=1)
    hint = f"; did you mean {near[0]!r}?" if near else ""
    return f"there is no setting {name!r}{hint}"


def _keep(
    target: dict[str, Any],
    draft: AgentDraft,
    path: str,
    name: str,
    field: Field,
    form: type[msgspec.Struct],
) -> None:
    if problem := _problem(name, field.data, form):
        draft.problems.error(path, f"{name}: {problem}; it is not used", field.line)
    else:
        target[name] = field.data


def _problem(name: str, value: Any, form: type[msgspec.Struct]) -> str:
    """Return a description of what is wrong with a value; empty if it is valid."""
    kind = next(info.type for info in fields(form) if info.name == name)
    choices = get_args(kind)
    if choices and all(isinstance(choice, str) for choice in choices) and value not in choices:
        return f"has to be one of {', '.join(choices)}, not {value!r}"
    try:
        made = msgspec.convert({name: value}, form)
        if isinstance(made, SearchSettings):
            made = Settings(guide_search=made)
        if isinstance(made, Settings | Options):
            require_usable(made)
    except InvalidSetting as error:
        return f"{error.problem}, not {value!r}"
    except msgspec.ValidationError:
        kinds = [choice for choice in choices or (kind,) if choice is not NoneType]
        words = " or ".join(_WORDS.get(kind, "an object") for kind in kinds)
        return f"has to be {words}, not {value!r}"
    except LaminaError as error:
        return str(error)
    return ""


def read_search(draft: AgentDraft, path: str, name: str, field: Field) -> dict[str, Any]:
    """Return search settings, given as a preset's name, as a boolean, or one by one."""
    if isinstance(field.data, bool):
        return {"search": field.data}
    if field.is_scalar:
        return _preset(draft, path, name, field)
    if not field.is_object:
        choices = ", ".join(PRESETS)
        problem = f"{name}: has to be one of {choices}, or an object, not {field.kind}"
        draft.problems.error(path, problem, field.line)
        return {}
    preset = field.entries.get("preset")
    settings = _preset(draft, path, name, preset) if preset and preset.data is not None else {}
    for key, value in field.entries.items():
        if key == "preset" or value.data is None:
            continue
        if key in _SEARCH_FIELDS:
            _keep(settings, draft, path, key, value, SearchSettings)
        else:
            draft.problems.error(path, _no_part(key), value.line)
    return settings


def _no_part(part: str) -> str:
    """Return the reason why a search has no such part; empty if it has one."""
    if part in _SEARCH_FIELDS:
        return ""
    near = get_close_matches(part, sorted(_SEARCH_FIELDS), n=1)
    hint = f"did you mean {near[0]!r}?" if near else f"known: {', '.join(sorted(_SEARCH_FIELDS))}"
    return f"a search has no setting {part!r}; {hint}"


def _preset(draft: AgentDraft, path: str, name: str, field: Field) -> dict[str, Any]:
    from lamina.core.values.selection import preset

    word = field.text.strip().lower() if field.is_scalar else ""
    if word not in PRESETS:
        problem = f"{name}: the preset has to be one of {', '.join(PRESETS)}, not {field.spelling}"
        draft.problems.error(path, problem, field.line)
        return {}
    return msgspec.structs.asdict(preset(word))  # type: ignore[arg-type]


def read_model(draft: AgentDraft, path: str, field: Field | None) -> str:
    """Return a model as `provider:id`; empty if it has another format."""
    if field is None:
        return ""
    name = field.text.strip() if field.is_scalar else ""
    provider, colon, model = name.partition(":")
    if provider.strip() and colon and model.strip():
        return name
    problem = f"model: has to be 'provider:id', as anthropic:claude-opus-5, not {field.spelling}"
    draft.problems.error(path, problem, field.line)
    return ""


def as_number(field: Field) -> Field:
    """Return the field with a number written as a string, as in older programs, converted to a
    number."""
    value = number_of(field)
    return field if value is None else Field(line=field.line, data=value, text=field.text)
