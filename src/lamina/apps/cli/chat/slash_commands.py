"""The slash commands of `lamina chat`: what each one does, and its possible arguments, for
completion. `command_table` lists their usage.
"""

import re
import shlex
from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import Any

from msgspec.structs import replace

from lamina.adapters.files.extras import require
from lamina.adapters.providers.local.model_catalogue import LOCAL_MODELS
from lamina.adapters.providers.model_book import load_book
from lamina.apps.cli.chat.command_table import ALIASES, COMMANDS, similar_commands, usage_of
from lamina.apps.cli.chat.conversation import Conversation
from lamina.apps.cli.chat.slash_views import (
    show_help,
    show_items,
    show_log,
    show_request,
    show_settings,
    show_tools,
    show_tree,
)
from lamina.apps.cli.chat.welcome import why_no_answer
from lamina.apps.cli.console_notices import ConsoleNotices
from lamina.apps.cli.footnotes import list_hits
from lamina.apps.cli.session_tree import LAST, find_question, questions_of
from lamina.apps.cli.terminal_text import one_line
from lamina.apps.cli.why_command import draw_why
from lamina.apps.views.mentions import workspace_path
from lamina.apps.views.plain_text import write_price
from lamina.apps.views.sent_requests import journal_of, last_request
from lamina.apps.views.session_items import change_row
from lamina.apps.views.session_opener import ensure_target
from lamina.apps.views.settings_by_name import (
    NONE,
    OPTION_TYPES,
    SETTING_TYPES,
    choices_of,
    describe_allowed,
    parse_setting,
    settings_change,
    write_value,
)
from lamina.apps.views.why import explain_question
from lamina.apps.wiring.folders import memory_file
from lamina.core.audit.session_totals import name_of
from lamina.core.values.entry import MessageEntry
from lamina.core.values.item import AttachmentSpec, Item, key_of
from lamina.core.values.patch import OptionsSet
from lamina.engine.session.session import Session
from lamina.errors import InvalidSetting, UsageError

Arguments = Iterable[tuple[str, str]]


def list_arguments(chat: Conversation, name: str, words: list[str]) -> Arguments:
    """Possible values of the last of `words`, with descriptions. The name `@` means a mention."""
    match name:
        case "attach":
            return [("--essential", "never left out for lack of room")]
        case "detach":
            return [*((path, "attached") for path in chat.attached), ("all", "")]
        case "unpin":
            return [(key_of(item), "pinned") for item in chat.session.state.library.pinned]
        case "add":
            return chat.members.addable
        case "remove":
            return chat.members.removable
        case "@":
            return chat.members.mentions
        case "settings" if len(words) == 2:
            return [(choice, "") for choice in choices_of(words[0])]
    return _first_arguments(chat.session, name) if len(words) == 1 else ()


def _first_arguments(session: Session, name: str) -> Arguments:
    match name:
        case "items":
            return [("adopt", "apply changes in the agent's files")]
        case "context":
            return [("--full", "every segment as it was sent")]
        case "branch" | "label" | "edit" | "regenerate":
            questions = reversed(questions_of(session))
            return [(entry.id, one_line(entry.message.text, 60)) for entry in questions]
        case "model":
            local = [(f"local:{model.name}", model.title) for model in LOCAL_MODELS.values()]
            return local + [(target, "") for target in load_book().names() if "*" not in target]
        case "why":
            messages = [entry.message for entry in session.path if isinstance(entry, MessageEntry)]
            texts = [message.text for message in messages if message.role == "user"]
            return [(str(number), one_line(text, 60)) for number, text in enumerate(texts, 1)]
        case "settings":
            return [(setting, describe_allowed(setting)) for setting in SETTING_TYPES]
    return ()


async def attach(chat: Conversation, rest: str) -> None:
    words = _split_words(rest)
    essential = "--essential" in words
    paths = [_path(chat, word) for word in words if word != "--essential"]
    if not paths:
        _list_attached(chat)
    for path in paths:
        content = await chat.session.preview_attachment(path)
        if not content.attachments:
            chat.fail(f"not attached: {content.left_out[0].detail}")
            continue
        chat.attached[path] = essential
        chat.detached.discard(path)
        size = _describe_size([attachment.item for attachment in content.attachments])
        chat.screen.tell(f"attached {path} ({size}{', essential' * essential}) until /detach")
        _warn(chat, content.warnings)


async def detach(chat: Conversation, rest: str) -> None:
    words = _split_words(rest)
    if not words and len(chat.attached) > 1:
        _list_attached(chat)
        raise UsageError(usage_of("detach"))
    everything = words in ([], ["all"])
    paths = list(chat.attached) if everything else [_path(chat, word) for word in words]
    if not paths:
        chat.screen.tell("nothing is attached")
    for path in paths:
        if chat.attached.pop(path, None) is None:
            raise UsageError(f"{path} is not attached; /attach lists what is")
        chat.detached.add(path)
        chat.screen.tell(f"{path} is no longer attached; what was sent of it stays in history")


async def set_active(chat: Conversation, rest: str) -> None:
    tell, words = chat.screen.tell, _split_words(rest)
    if not words:
        tell(f"open: {chat.active}" if chat.active else "no note is open; /active NOTE")
        return
    if len(words) > 1:
        raise UsageError(usage_of("active"))
    if words[0] == "none":
        chat.active = None
        tell("no note is open now")
        return
    path = _path(chat, words[0])
    content = await chat.session.preview_attachment(AttachmentSpec(what=path, shape="active"))
    if not content.attachments:
        raise UsageError(content.left_out[0].detail)
    chat.active = path
    size = _describe_size([content.attachments[0].item])
    tell(f"{path} is open ({size}), until /active none")
    _warn(chat, content.warnings)


async def search(chat: Conversation, rest: str) -> None:
    searcher = chat.session.searcher
    require("search")
    if not rest or searcher is None:
        raise UsageError(usage_of("search"))
    hits = await searcher.search(rest)
    chat.screen.show(list_hits(hits, chat.screen.width))
    _warn(chat, hits.warnings)


async def refresh(chat: Conversation, _: str) -> None:
    changes = await chat.session.refresh()
    for change in changes:
        chat.screen.tell(change.detail)
    chat.screen.tell("the model sees it with the next message" if changes else "nothing changed")


async def remember(chat: Conversation, rest: str) -> None:
    file = memory_file()
    if rest:
        is_new = await file.add(rest)
        effect = "remembered from the next message on" if is_new else "already remembered"
        chat.screen.tell(f"{effect}; manage memories with `lamina memory`")
        return
    lines = await file.lines()
    for line in lines:
        chat.screen.tell(f"{line.number:>3}  {one_line(line.text)}")
    if not lines:
        chat.screen.tell("no memories yet; /remember TEXT adds one")


async def pin(chat: Conversation, rest: str) -> None:
    for word in _split_words(rest):
        path = _path(chat, word)
        is_new = await chat.session.pin(path)
        chat.screen.tell(f"pinned {path}" if is_new else f"{path} is already pinned")
    if not rest:
        pinned = ", ".join(key_of(item) for item in chat.session.state.library.pinned)
        chat.screen.tell(
            f"pinned: {pinned}" if pinned else "nothing is pinned; /pin PATH pins a file"
        )


async def unpin(chat: Conversation, rest: str) -> None:
    words = _split_words(rest)
    if not words:
        raise UsageError(usage_of("unpin"))
    for word in words:
        path = _path(chat, word)
        if not await chat.session.unpin(path):
            raise UsageError(f"{path} is not pinned; /pin lists what is")
        chat.screen.tell(f"{path} is no longer pinned")


_ATTACHMENT_HANDLERS = {
    "attach": attach,
    "detach": detach,
    "active": set_active,
    "search": search,
    "refresh": refresh,
    "remember": remember,
    "pin": pin,
    "unpin": unpin,
}


def _warn(chat: Conversation, warnings: Sequence[str]) -> None:
    for warning in warnings:
        chat.screen.warn(warning)


def _list_attached(chat: Conversation) -> None:
    paths = [f"{path}{' (essential)' * vital}" for path, vital in chat.attached.items()]
    chat.screen.tell("attached: " + ", ".join(paths) if paths else "nothing is attached")


def _path(chat: Conversation, word: str) -> str:
    return workspace_path(word.removeprefix("@"), chat.root)


def _describe_size(items: Sequence[Item]) -> str:
    """The size of an item, and of the items that come with it."""
    main, along = items[0], len(items) - 1
    size = f"{sum(len(item.content) for item in items):,} characters"
    if not main.content and main.pictures:
        return "an image"
    if along:
        size = f"{along:,} more item{'s' * (along > 1)}, {size} in all"
    if main.pictures:
        size += f", {len(main.pictures)} picture{'s' * (len(main.pictures) > 1)}"
    return size


def _split_words(text: str) -> list[str]:
    """Split the words after a command; quotes keep spaces.

    Raises:
        UsageError: a quote is not closed.
    """
    try:
        return shlex.split(text)
    except ValueError as error:
        raise UsageError(f"{text!r}: {error}; close the quote, or leave it out") from error


LOG_LINES = 15
# Of /items: apply the current state of the agent's files.
ADOPT = "adopt"
# The form of an entry id; other words begin the text of a question.
_ENTRY = re.compile(r"[0-9a-f]{6,}")


async def show_context(chat: Conversation, rest: str) -> None:
    if rest not in ("", "--full"):
        raise UsageError(usage_of("context"))
    recorded = last_request(chat.session)
    if recorded is None:
        chat.screen.tell("nothing has been sent on this path yet")
    else:
        chat.screen.show(show_request(recorded, full=bool(rest)))


async def explain(chat: Conversation, rest: str) -> None:
    if rest and not rest.isdecimal():
        raise UsageError(usage_of("why"))
    number = int(rest) if rest else None
    explanation = replace(
        explain_question(journal_of(chat.session), number, load_book()),
        agent_changes=tuple(map(change_row, await chat.session.find_agent_changes())),
    )
    chat.screen.show(draw_why(explanation, chat.screen.width))


async def compact(chat: Conversation, _: str) -> None:
    if chat.session.interrupted:
        raise UsageError(
            "the last question has no answer yet: /resume it, or ask something else, then /compact"
        )
    chat.screen.tell("summarising …")
    compaction = await chat.session.compact()
    if not compaction.changed:
        chat.screen.tell(f"nothing was compacted: {compaction.reason}")
        return
    chat.screen.tell(
        f"{compaction.messages} messages ({compaction.tokens_dropped:,} tokens) were replaced "
        f"by a summary from {compaction.by}; the journal keeps them"
    )
    if compaction.problem:
        chat.screen.warn(compaction.problem)


async def list_items(chat: Conversation, rest: str) -> None:
    if rest not in ("", ADOPT):
        raise UsageError(usage_of("items"))
    if rest:
        changes = await chat.session.adopt_agent()
        for change in changes:
            chat.screen.tell(f"applied: {change.detail}")
        if not changes:
            chat.screen.tell("the session matches the agent's files")
            return
    await chat.members.look_up(tools=True)
    chat.screen.show(show_items(chat.members))


async def add(chat: Conversation, rest: str) -> None:
    if not rest:
        raise UsageError(f"{usage_of('add')}; /items lists what can be added")
    await chat.members.look_up(tools=True)
    is_new = await chat.session.add(rest)
    effect = "is included from the next message on" if is_new else "is already included"
    chat.screen.tell(f"{rest} {effect}")


async def remove(chat: Conversation, rest: str) -> None:
    if not rest:
        raise UsageError(f"{usage_of('remove')}; /items lists what is included")
    await chat.members.look_up(tools=True)
    was_there = await chat.session.remove(rest)
    if not was_there:
        chat.members.require_known(rest)
    effect = "is excluded from the next message on, also from search, until you /add it"
    chat.screen.tell(f"{rest} {effect if was_there else 'was not included'}")


async def draw_tree(chat: Conversation, _: str) -> None:
    chat.screen.show(show_tree(chat.session, chat.screen.width))


async def branch(chat: Conversation, rest: str) -> None:
    if not rest:
        raise UsageError(f"{usage_of('branch')}; /tree lists the questions")
    if rest not in {entry.id for entry in questions_of(chat.session)}:
        raise UsageError(f"{rest!r} is not a question; /tree lists them")
    position = await chat.session.navigate(rest)
    if not position.text:
        chat.screen.tell(f"the session continues after {position.entry}")
        return
    chat.offered = position.text
    chat.screen.tell("the session continues before that question; edit it and press Enter")
    if not chat.screen.live:
        chat.screen.tell(f"the question was: {one_line(position.text)}")


async def edit(chat: Conversation, rest: str) -> None:
    entry, _, text = rest.partition(" ")
    if entry != LAST and not _ENTRY.fullmatch(entry):
        entry, text = LAST, rest
    question = find_question(chat.session, entry)
    if text.strip():
        await chat.ask_instead(question, text.strip())
        return
    chat.offered = f"/edit {question.id} {question.message.text}"
    if not chat.screen.live:
        raise UsageError(f"{usage_of('edit')}; the question was: {one_line(question.message.text)}")


async def regenerate(chat: Conversation, rest: str) -> None:
    words = rest.split()
    targets = [word for word in words if ":" in word]
    entries = [word for word in words if ":" not in word]
    if len(targets) > 1 or len(entries) > 1:
        raise UsageError(usage_of("regenerate"))
    answer = None if entries in ([], [LAST]) else entries[0]
    await chat.answer_again(answer, targets[0] if targets else None)


async def label(chat: Conversation, rest: str) -> None:
    entry, _, text = rest.partition(" ")
    if not entry:
        raise UsageError(usage_of("label"))
    await chat.session.label(entry, text)
    name = text.strip()
    chat.screen.tell(f"{entry} is labelled {name!r}" if name else "label removed")


async def resume(chat: Conversation, _: str) -> None:
    await chat.go_on()


async def rename(chat: Conversation, rest: str) -> None:
    session = chat.session
    if rest:
        await session.rename(rest)
    name = one_line(name_of(session.entries) or "(no name)")
    chat.screen.tell(f"{name} · session {session.id}")


async def list_entries(chat: Conversation, rest: str) -> None:
    if rest and not rest.isdigit():
        raise UsageError(usage_of("log"))
    count = max(1, int(rest or LOG_LINES))
    chat.screen.show(show_log(chat.session, count, chat.screen.width))


_SESSION_HANDLERS = {
    "context": show_context,
    "why": explain,
    "compact": compact,
    "items": list_items,
    "add": add,
    "remove": remove,
    "tree": draw_tree,
    "branch": branch,
    "edit": edit,
    "regenerate": regenerate,
    "label": label,
    "resume": resume,
    "name": rename,
    "log": list_entries,
}


async def choose_model(chat: Conversation, rest: str) -> None:
    tell, target = chat.screen.tell, chat.session.target(rest or None)
    if not rest:
        tell(f"{target.name} · window {target.window:,} · {write_price(target.prices)}")
        return
    await ensure_target(target, ConsoleNotices(chat.screen.err))
    await chat.session.update_settings(target=target.name)
    if problem := await why_no_answer(target):
        tell(f"the session now uses {target.name}")
        chat.screen.warn(problem)
    else:
        tell(f"{target.name} answers from now on; this session is not in its cache")


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
        raise InvalidSetting(name, NONE, "cannot be unset; give a value")
    option: dict[str, Any] = {name: value}
    # Checked here, so that the error names the setting.
    replace(chat.session.envelope.options, **option)
    await chat.session.apply("lamina.chat", OptionsSet(**option))


async def list_tools(chat: Conversation, _: str) -> None:
    toolset = await chat.runner.toolset()
    chat.screen.show(show_tools(toolset, list(chat.session.state.allowed), chat.screen.width))


_SETTING_HANDLERS = {"model": choose_model, "settings": change_setting, "tools": list_tools}


async def show_commands(chat: Conversation, _: str) -> None:
    chat.screen.show(show_help())


async def leave(chat: Conversation, _: str) -> None:
    chat.leaving = True


# Each function gets the text after the name.
HANDLERS: dict[str, Callable[[Conversation, str], Awaitable[None]]] = {
    **_ATTACHMENT_HANDLERS,
    **_SESSION_HANDLERS,
    **_SETTING_HANDLERS,
    "help": show_commands,
    "quit": leave,
}


async def run_command(chat: Conversation, line: str) -> None:
    """Run the command in a line that begins with a slash.

    Raises:
        UsageError: there is no such command, or it needs other arguments.
    """
    name, _, rest = line[1:].strip().partition(" ")
    name, rest = ALIASES.get(name, name), rest.strip()
    if name not in COMMANDS:
        suggestion = " or ".join(f"/{command}" for command in similar_commands(name))
        hint = f"did you mean {suggestion}?" if suggestion else "/help lists them."
        raise UsageError(f"no command /{name}; {hint} // sends a message that begins with /")
    if rest and not COMMANDS[name].usage:
        raise UsageError(f"/{name} accepts no arguments")
    await HANDLERS[name](chat, rest)
