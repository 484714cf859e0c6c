"""The commands of the chat: what each one does. `table` says what they are called with."""

import shlex
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from lamina.cli.chat.settings import (
    NONE,
    SETTING_TYPES,
    choices_of,
    describe_allowed,
    is_option,
    parse_setting,
    settings_change,
    write_value,
)
from lamina.cli.chat.slash.command_table import ALIASES, COMMANDS, similar_commands
from lamina.cli.chat.views import (
    show_help,
    show_items,
    show_log,
    show_request,
    show_settings,
    show_tools,
    show_tree,
)
from lamina.cli.chat.welcome import why_no_answer
from lamina.cli.hits import show_hits
from lamina.cli.runner import ensure_target
from lamina.cli.terminal_text import one_line
from lamina.cli.why import draw_why
from lamina.errors import InvalidSetting, UsageError
from lamina.faces.mentions import workspace_path
from lamina.faces.recorder import last_request
from lamina.faces.session_tree import questions_of
from lamina.faces.why import explain_question
from lamina.journal import Journal
from lamina.providers.local.models import LOCAL_MODELS
from lamina.providers.model_book import load_book
from lamina.session.tree import name_of
from lamina.values.entry import MessageEntry
from lamina.values.item import AttachmentSpec, Item, key_of
from lamina.values.patch import OptionsSet
from lamina.wiring.workspaces import memory_file

if TYPE_CHECKING:
    from lamina.cli.chat.chat import Chat

LOG_LINES = 15


class SlashCommands:
    """Each method named `do_NAME` is the command `/NAME`; it gets the text behind the name,
    if there may be any."""

    def __init__(self, chat: "Chat") -> None:
        self._chat = chat

    async def run(self, line: str) -> None:
        """Does what a line that begins with a slash says.

        Raises:
            UsageError: there is no such command, or it is called otherwise.
        """
        name, _, rest = line[1:].strip().partition(" ")
        name = ALIASES.get(name, name)
        if name not in COMMANDS:
            meant = " or ".join(f"/{command}" for command in similar_commands(name))
            hint = f"did you mean {meant}?" if meant else "/help lists them."
            raise UsageError(f"no command /{name}; {hint} // sends a message that begins with /")
        do = getattr(self, f"do_{name}")
        if COMMANDS[name].usage:
            await do(rest.strip())
        elif rest.strip():
            raise UsageError(f"/{name} takes nothing behind it")
        else:
            await do()

    def arguments(self, name: str, words: list[str]) -> Iterable[tuple[str, str]]:
        """What may stand at the last of `words`, with what it is; for completion."""
        session = self._chat.session
        first = len(words) == 1
        match name:
            case "context" if first:
                return [("--full", "every segment as it was sent")]
            case "attach":
                return [("--essential", "never left out for want of room")]
            case "detach":
                return [*((path, "attached") for path in self._chat.attached), ("all", "")]
            case "unpin":
                return [(key_of(item), "pinned") for item in session.state.pinned]
            case "branch" | "label" if first:
                found = reversed(questions_of(session))
                return [(entry.id, one_line(entry.message.text, 60)) for entry in found]
            case "model" if first:
                here = [(f"local:{model.name}", model.title) for model in LOCAL_MODELS.values()]
                return here + [(name, "") for name in load_book().names() if "*" not in name]
            case "why" if first:
                asked = [e for e in session.path if isinstance(e, MessageEntry)]
                said = [e.message.text for e in asked if e.message.role == "user"]
                return [(str(at), one_line(text, 60)) for at, text in enumerate(said, 1)]
            case "add":
                return self._chat.members.addable
            case "remove":
                return self._chat.members.removable
            case "@":
                return self._chat.members.mentions
            case "settings" if first:
                return [(each, describe_allowed(each)) for each in SETTING_TYPES]
            case "settings" if len(words) == 2:
                return [(each, "") for each in choices_of(words[0])]
        return ()

    # -- what was sent ---------------------------------------------------------------------------

    async def do_context(self, rest: str) -> None:
        if rest not in ("", "--full"):
            raise UsageError(_usage("context"))
        recorded = last_request(self._chat.session)
        if recorded is None:
            self._tell("nothing was sent yet on this path")
            return
        self._chat.screen.show(show_request(recorded, full=bool(rest)))

    async def do_why(self, rest: str) -> None:
        if rest and not rest.isdecimal():
            raise UsageError(_usage("why"))
        session, screen = self._chat.session, self._chat.screen
        entries = {entry.id: entry for entry in session.entries}
        journal = Journal(entries=entries, leaf=session.state.leaf)
        why = explain_question(journal, int(rest) if rest else None, load_book())
        screen.show(draw_why(why, screen.width))

    async def do_compact(self) -> None:
        session = self._chat.session
        if session.interrupted:
            raise UsageError(
                "the last question has no answer yet: /resume it, or ask something else, "
                "then /compact"
            )
        self._tell("summarising …")
        done = await session.compact()
        if not done.changed:
            self._tell(f"nothing was compacted: {done.reason}")
            return
        self._tell(
            f"{done.messages} messages ({done.tokens_dropped:,} tokens) gave way to a summary "
            f"by {done.by}; the journal keeps them"
        )
        if done.problem:
            self._chat.screen.warn(done.problem)

    # -- attachments -----------------------------------------------------------------------------

    async def do_attach(self, rest: str) -> None:
        words = _words(rest)
        essential = "--essential" in words
        paths = [self._path(word) for word in words if word != "--essential"]
        if not paths:
            self._list_attached()
            return
        for path in paths:
            found = await self._chat.session.look(path)
            if not found.attachments:
                self._chat.fail(f"not attached: {found.left_out[0].detail}")
                continue
            self._chat.attached[path] = essential
            size = _say_size([attachment.item for attachment in found.attachments])
            self._tell(f"attached {path} ({size}{', essential' * essential}) until /detach")
            for warning in found.warnings:
                self._chat.screen.warn(warning)

    async def do_detach(self, rest: str) -> None:
        words = _words(rest)
        attached = self._chat.attached
        if not words and len(attached) > 1:
            self._list_attached()
            raise UsageError(_usage("detach"))
        paths = list(attached) if words in ([], ["all"]) else [self._path(word) for word in words]
        if not paths:
            self._tell("nothing is attached")
        for path in paths:
            if attached.pop(path, None) is None:
                raise UsageError(f"{path} is not attached; /attach lists what is")
            self._tell(f"{path} is attached no longer; what was sent of it stays in history")

    async def do_active(self, rest: str) -> None:
        chat = self._chat
        words = _words(rest)
        if not words:
            self._tell(f"open: {chat.active}" if chat.active else "no note is open; /active NOTE")
            return
        if len(words) > 1:
            raise UsageError(_usage("active"))
        if words[0] == "none":
            chat.active = None
            self._tell("no note is open any more")
            return
        path = self._path(words[0])
        found = await chat.session.look(AttachmentSpec(what=path, shape="active"))
        if not found.attachments:
            raise UsageError(found.left_out[0].detail)
        chat.active = path
        self._tell(f"{path} is open ({_say_size([found.attachments[0].item])}), until /active none")
        for warning in found.warnings:
            chat.screen.warn(warning)

    async def do_search(self, rest: str) -> None:
        searcher = self._chat.session.searcher
        if not rest or searcher is None:
            raise UsageError(_usage("search"))
        found = await searcher.search(rest)
        self._chat.screen.show(show_hits(found, self._chat.screen.width))
        for warning in found.warnings:
            self._chat.screen.warn(warning)

    async def do_refresh(self) -> None:
        changes = await self._chat.session.refresh()
        for change in changes:
            self._tell(change.detail)
        told = "the model sees it with the next message" if changes else "nothing changed"
        self._tell(told)

    async def do_remember(self, rest: str) -> None:
        file = memory_file()
        if rest:
            new = await file.add(rest)
            told = "from the next message on" if new else "it was remembered already"
            self._tell(f"{told}; `lamina memory` shows and forgets")
            return
        held = await file.remembered()
        for line in held:
            self._tell(f"{line.number:>3}  {one_line(line.text)}")
        if not held:
            self._tell("nothing is remembered; /remember TEXT does")

    async def do_pin(self, rest: str) -> None:
        session = self._chat.session
        for path in map(self._path, _words(rest)):
            new = await session.pin(path)
            self._tell(f"pinned {path}" if new else f"{path} was pinned already")
        if not rest:
            pinned = ", ".join(key_of(item) for item in session.state.pinned)
            self._tell(f"pinned: {pinned}" if pinned else "nothing is pinned; /pin PATH pins")

    async def do_unpin(self, rest: str) -> None:
        words = _words(rest)
        if not words:
            raise UsageError(_usage("unpin"))
        for path in map(self._path, words):
            if not await self._chat.session.unpin(path):
                raise UsageError(f"{path} is not pinned; /pin lists what is")
            self._tell(f"{path} is pinned no longer")

    def _list_attached(self) -> None:
        listed = [f"{path}{' (essential)' * vital}" for path, vital in self._chat.attached.items()]
        self._tell("attached: " + ", ".join(listed) if listed else "nothing is attached")

    def _path(self, word: str) -> str:
        return workspace_path(word.removeprefix("@"), self._chat.root)

    # -- rules, references and tools -------------------------------------------------------------

    async def do_items(self) -> None:
        await self._chat.members.look_up(tools=True)
        self._chat.screen.show(show_items(self._chat.members))

    async def do_add(self, rest: str) -> None:
        if not rest:
            raise UsageError(f"{_usage('add')}; /items lists what can be added")
        await self._chat.members.look_up(tools=True)
        new = await self._chat.session.add(rest)
        self._tell(f"{rest} is in from the next message on" if new else f"{rest} was in already")

    async def do_remove(self, rest: str) -> None:
        if not rest:
            raise UsageError(f"{_usage('remove')}; /items lists what is in")
        await self._chat.members.look_up(tools=True)
        gone = await self._chat.session.remove(rest)
        out = f"{rest} is out from the next message on, also of search, until you /add it"
        self._tell(out if gone else f"{rest} was not there")

    # -- the tree --------------------------------------------------------------------------------

    async def do_tree(self) -> None:
        self._chat.screen.show(show_tree(self._chat.session, self._chat.screen.width))

    async def do_branch(self, rest: str) -> None:
        if not rest:
            raise UsageError(f"{_usage('branch')}; /tree lists the questions")
        session = self._chat.session
        if rest not in {entry.id for entry in questions_of(session)}:
            raise UsageError(f"{rest} is no question; /tree lists them")
        position = await session.navigate(rest)
        if not position.text:
            self._tell(f"the session goes on behind {position.entry}")
            return
        self._chat.offered = position.text
        self._tell("the session goes on in front of that question; edit it and press Enter")
        if not self._chat.screen.live:
            self._tell(f"it was: {one_line(position.text)}")

    async def do_label(self, rest: str) -> None:
        entry, _, text = rest.partition(" ")
        if not entry:
            raise UsageError(_usage("label"))
        await self._chat.session.label(entry, text)
        self._tell(f"{entry} is called {text.strip()!r}" if text.strip() else "label taken away")

    async def do_resume(self) -> None:
        await self._chat.go_on()

    async def do_name(self, rest: str) -> None:
        session = self._chat.session
        if rest:
            await session.rename(rest)
        self._tell(f"{one_line(name_of(session.entries) or '(no name)')} · session {session.id}")

    async def do_log(self, rest: str) -> None:
        if rest and not rest.isdigit():
            raise UsageError(_usage("log"))
        count = max(1, int(rest or LOG_LINES))
        self._chat.screen.show(show_log(self._chat.session, count, self._chat.screen.width))

    # -- settings --------------------------------------------------------------------------------

    async def do_model(self, rest: str) -> None:
        session = self._chat.session
        if not rest:
            target = session.target()
            self._tell(f"{target.name} · window {target.window:,} · {_price(target.input_price)}")
            return
        target = session.target(rest)
        await ensure_target(target, self._chat.screen.err)
        await session.change(target=target.name)
        if problem := await why_no_answer(target):
            self._tell(f"the session is for {target.name} from now on")
            self._chat.screen.warn(problem)
        else:
            told = "answers from now on; its cache knows nothing of this session"
            self._tell(f"{target.name} {told}")

    async def do_settings(self, rest: str) -> None:
        chat = self._chat
        if not rest:
            chat.screen.show(show_settings(chat.session))
            return
        name, _, text = rest.partition(" ")
        if not text.strip():
            raise UsageError(f"what should {name} be? {_usage('settings')}")
        value = parse_setting(name, text.strip())
        if name == "target":
            await self.do_model(text.strip())
            return
        if is_option(name):
            await self._set_option(name, value)
        else:
            await chat.session.change(**settings_change(name, value, chat.session.settings))
        self._tell(f"{name} is {write_value(value)} from the next message on")

    async def _set_option(self, name: str, value: object) -> None:
        if value is None:
            raise InvalidSetting(name, NONE, "cannot be taken away again; give a value")
        given: dict[str, Any] = {name: value}
        # Refused here, it is refused in the setting's own words.
        replace(self._chat.session.envelope.options, **given)
        await self._chat.session.apply("lamina.chat", OptionsSet(**given))

    async def do_tools(self) -> None:
        session, screen = self._chat.session, self._chat.screen
        toolset = await self._chat.runner.toolset()
        screen.show(show_tools(toolset, list(session.state.allowed), screen.width))

    # -- the chat --------------------------------------------------------------------------------

    async def do_help(self) -> None:
        self._chat.screen.show(show_help())

    async def do_quit(self) -> None:
        self._chat.leaving = True

    def _tell(self, text: str) -> None:
        self._chat.screen.tell(text)


def _say_size(items: Sequence[Item]) -> str:
    """How much it is: the item that is meant, and what comes along."""
    main, along = items[0], len(items) - 1
    size = f"{sum(len(item.content) for item in items):,} characters"
    if not main.content and main.pictures:
        return "an image"
    if along:
        size = f"{along:,} more item{'s' * (along > 1)}, {size} in all"
    if main.pictures:
        size += f", {len(main.pictures)} picture{'s' * (len(main.pictures) > 1)}"
    return size


def _usage(name: str) -> str:
    command = COMMANDS[name]
    return f"use it as /{name} {command.usage}"


def _words(text: str) -> list[str]:
    """What stands behind a command, in words; quotes keep spaces.

    Raises:
        UsageError: a quote is not closed.
    """
    try:
        return shlex.split(text)
    except ValueError as error:
        raise UsageError(f"{text!r}: {error}; close the quote, or leave it out") from error


def _price(per_million: float) -> str:
    return f"${per_million:g} a million tokens" if per_million else "free"
