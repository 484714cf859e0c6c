"""Commands of the chat about the session: what was sent and why, what applies to it, its tree, its
name and its journal."""

import re

from msgspec.structs import replace

from lamina.adapters.providers.model_book import load_book
from lamina.apps.cli.chat.conversation import Conversation
from lamina.apps.cli.chat.slash.command_table import usage_of
from lamina.apps.cli.chat.views import show_items, show_log, show_request, show_tree
from lamina.apps.cli.session_tree import LAST, find_question, questions_of
from lamina.apps.cli.terminal_text import one_line
from lamina.apps.cli.why import draw_why
from lamina.apps.views.items import change_row
from lamina.apps.views.sent_requests import journal_of, last_request
from lamina.apps.views.why import explain_question
from lamina.core.audit.totals import name_of
from lamina.errors import UsageError

LOG_LINES = 15
# Behind /items: take over what the agent's files say by now.
ADOPT = "adopt"
# What an id of an entry looks like; other words begin the text of a question.
_ENTRY = re.compile(r"[0-9a-f]{6,}")


async def show_context(chat: Conversation, rest: str) -> None:
    if rest not in ("", "--full"):
        raise UsageError(usage_of("context"))
    recorded = last_request(chat.session)
    if recorded is None:
        chat.screen.tell("nothing was sent yet on this path")
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
        f"{compaction.messages} messages ({compaction.tokens_dropped:,} tokens) gave way to a "
        f"summary by {compaction.by}; the journal keeps them"
    )
    if compaction.problem:
        chat.screen.warn(compaction.problem)


async def list_items(chat: Conversation, rest: str) -> None:
    if rest not in ("", ADOPT):
        raise UsageError(usage_of("items"))
    if rest:
        changes = await chat.session.adopt_agent()
        for change in changes:
            chat.screen.tell(f"taken over: {change.detail}")
        if not changes:
            chat.screen.tell("the session has what the agent's files say")
            return
    await chat.members.look_up(tools=True)
    chat.screen.show(show_items(chat.members))


async def add(chat: Conversation, rest: str) -> None:
    if not rest:
        raise UsageError(f"{usage_of('add')}; /items lists what can be added")
    await chat.members.look_up(tools=True)
    is_new = await chat.session.add(rest)
    effect = "is in from the next message on" if is_new else "was in already"
    chat.screen.tell(f"{rest} {effect}")


async def remove(chat: Conversation, rest: str) -> None:
    if not rest:
        raise UsageError(f"{usage_of('remove')}; /items lists what is in")
    await chat.members.look_up(tools=True)
    was_there = await chat.session.remove(rest)
    if not was_there:
        chat.members.require_known(rest)
    effect = "is out from the next message on, also of search, until you /add it"
    chat.screen.tell(f"{rest} {effect if was_there else 'was not there'}")


async def draw_tree(chat: Conversation, _: str) -> None:
    chat.screen.show(show_tree(chat.session, chat.screen.width))


async def branch(chat: Conversation, rest: str) -> None:
    if not rest:
        raise UsageError(f"{usage_of('branch')}; /tree lists the questions")
    if rest not in {entry.id for entry in questions_of(chat.session)}:
        raise UsageError(f"{rest} is no question; /tree lists them")
    position = await chat.session.navigate(rest)
    if not position.text:
        chat.screen.tell(f"the session goes on behind {position.entry}")
        return
    chat.offered = position.text
    chat.screen.tell("the session goes on in front of that question; edit it and press Enter")
    if not chat.screen.live:
        chat.screen.tell(f"it was: {one_line(position.text)}")


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
        raise UsageError(f"{usage_of('edit')}; it was: {one_line(question.message.text)}")


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
    chat.screen.tell(f"{entry} is called {name!r}" if name else "label taken away")


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


HANDLERS = {
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
