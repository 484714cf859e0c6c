"""Commands of the chat about what goes along with messages: attachments, pins, what is remembered
and what is found."""

import shlex
from collections.abc import Sequence

from lamina.adapters.extras import require
from lamina.apps.cli.chat.conversation import Conversation
from lamina.apps.cli.chat.slash.command_table import usage_of
from lamina.apps.cli.note_hits import list_hits
from lamina.apps.cli.terminal_text import one_line
from lamina.apps.views.mentions import workspace_path
from lamina.apps.wiring.workspaces import memory_file
from lamina.core.values.item import AttachmentSpec, Item, key_of
from lamina.errors import UsageError


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
        chat.screen.tell(f"{path} is attached no longer; what was sent of it stays in history")


async def set_active(chat: Conversation, rest: str) -> None:
    tell, words = chat.screen.tell, _split_words(rest)
    if not words:
        tell(f"open: {chat.active}" if chat.active else "no note is open; /active NOTE")
        return
    if len(words) > 1:
        raise UsageError(usage_of("active"))
    if words[0] == "none":
        chat.active = None
        tell("no note is open any more")
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
        effect = "from the next message on" if is_new else "it was remembered already"
        chat.screen.tell(f"{effect}; `lamina memory` shows and forgets")
        return
    lines = await file.lines()
    for line in lines:
        chat.screen.tell(f"{line.number:>3}  {one_line(line.text)}")
    if not lines:
        chat.screen.tell("nothing is remembered; /remember TEXT does")


async def pin(chat: Conversation, rest: str) -> None:
    for word in _split_words(rest):
        path = _path(chat, word)
        is_new = await chat.session.pin(path)
        chat.screen.tell(f"pinned {path}" if is_new else f"{path} was pinned already")
    if not rest:
        pinned = ", ".join(key_of(item) for item in chat.session.state.library.pinned)
        chat.screen.tell(f"pinned: {pinned}" if pinned else "nothing is pinned; /pin PATH pins")


async def unpin(chat: Conversation, rest: str) -> None:
    words = _split_words(rest)
    if not words:
        raise UsageError(usage_of("unpin"))
    for word in words:
        path = _path(chat, word)
        if not await chat.session.unpin(path):
            raise UsageError(f"{path} is not pinned; /pin lists what is")
        chat.screen.tell(f"{path} is pinned no longer")


HANDLERS = {
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
    """How much it is: the item itself, and what comes along."""
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
    """The words behind a command; quotes keep spaces.

    Raises:
        UsageError: a quote is not closed.
    """
    try:
        return shlex.split(text)
    except ValueError as error:
        raise UsageError(f"{text!r}: {error}; close the quote, or leave it out") from error
