"""Commands of the chat about how answers are made: the model, settings and tools."""

from typing import Any

from msgspec.structs import replace

from lamina.apps.cli.chat.conversation import Conversation
from lamina.apps.cli.chat.slash.command_table import usage_of
from lamina.apps.cli.chat.views import show_settings, show_tools
from lamina.apps.cli.chat.welcome import why_no_answer
from lamina.apps.cli.notices import ConsoleNotices
from lamina.apps.views.money import write_price
from lamina.apps.views.session_opener import ensure_target
from lamina.apps.views.settings import (
    NONE,
    OPTION_TYPES,
    parse_setting,
    settings_change,
    write_value,
)
from lamina.core.values.patch import OptionsSet
from lamina.errors import InvalidSetting, UsageError


async def choose_model(chat: Conversation, rest: str) -> None:
    tell, target = chat.screen.tell, chat.session.target(rest or None)
    if not rest:
        tell(f"{target.name} · window {target.window:,} · {write_price(target.prices)}")
        return
    await ensure_target(target, ConsoleNotices(chat.screen.err))
    await chat.session.update_settings(target=target.name)
    if problem := await why_no_answer(target):
        tell(f"the session is for {target.name} from now on")
        chat.screen.warn(problem)
    else:
        tell(f"{target.name} answers from now on; its cache knows nothing of this session")


async def change_setting(chat: Conversation, rest: str) -> None:
    session = chat.session
    if not rest:
        chat.screen.show(show_settings(session))
        return
    name, _, text = rest.partition(" ")
    if not text.strip():
        raise UsageError(f"what should {name} be? {usage_of('settings')}")
    value = parse_setting(name, text.strip())
    if name == "target":
        await choose_model(chat, text.strip())
        return
    if name in OPTION_TYPES:
        await _set_option(chat, name, value)
    else:
        await session.update_settings(**settings_change(name, value, session.settings))
    chat.screen.tell(f"{name} is {write_value(value)} from the next message on")


async def _set_option(chat: Conversation, name: str, value: object) -> None:
    if value is None:
        raise InvalidSetting(name, NONE, "cannot be taken away again; give a value")
    option: dict[str, Any] = {name: value}
    # Refused here, it is refused in the setting's own words.
    replace(chat.session.envelope.options, **option)
    await chat.session.apply("lamina.chat", OptionsSet(**option))


async def list_tools(chat: Conversation, _: str) -> None:
    toolset = await chat.runner.toolset()
    chat.screen.show(show_tools(toolset, list(chat.session.state.allowed), chat.screen.width))


HANDLERS = {"model": choose_model, "settings": change_setting, "tools": list_tools}
