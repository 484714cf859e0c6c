"""The chat: messages in, answers out, until the person leaves. While the chat waits for input,
notes are indexed.

Laws: an error is a line, and the chat continues. Ctrl-C stops the running work, not the chat.
Whatever ends the chat, the session is kept and closed. Background indexing stops as soon as a
message is sent, and loses nothing.
"""

import shlex
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager, nullcontext
from pathlib import Path

import anyio

from lamina.apps.cli.chat.approver import KeyboardApprover
from lamina.apps.cli.chat.conversation import Conversation
from lamina.apps.cli.chat.message_source import InputInterrupt, MessageSource, SilentSource
from lamina.apps.cli.chat.slash_commands import run_command
from lamina.apps.cli.chat.status_line import cache_line, status_line
from lamina.apps.cli.chat.turn_view import TurnView
from lamina.apps.cli.chat.welcome import greet
from lamina.apps.cli.console_notices import ConsoleNotices
from lamina.apps.cli.footnotes import hold_until_final, render_footnotes
from lamina.apps.cli.screen import Screen, quiet_keys
from lamina.apps.cli.session_tree import questions_of
from lamina.apps.cli.terminal_text import one_line
from lamina.apps.views.answer_json import CUT_OFF, TurnCost, sum_reports
from lamina.apps.views.background_fill import filling
from lamina.apps.views.mentions import find_mentions
from lamina.apps.views.session_opener import ensure_target
from lamina.apps.views.spending_report import ask_before_rewrites
from lamina.core.audit.session_totals import name_of
from lamina.core.ledger import cost_of
from lamina.core.ports import WorkspaceSource
from lamina.core.values.entry import MessageEntry, ReplyEntry
from lamina.core.values.item import AttachmentSpec
from lamina.core.values.prices import CostSum
from lamina.engine.runners.qa import QaRunner
from lamina.engine.runners.runner import Answer, ChatRunner, Listener
from lamina.engine.sources.attachments import Attachable
from lamina.engine.sources.note_search import WorkspaceSearch
from lamina.engine.task_groups import single_errors
from lamina.errors import LaminaError


class BackgroundIndexer:
    """Embeds missing passages of the notes while a message is typed; `progress` describes how far
    it is. With `at_once` it does not wait for the first search."""

    def __init__(self, search: WorkspaceSearch, *, at_once: bool) -> None:
        self._search = search
        self._at_once = at_once
        self.progress = ""

    @asynccontextmanager
    async def working(self) -> AsyncIterator[None]:
        search = self._search
        listener = search.reading
        # A bar would be drawn across the input line.
        search.reading = None
        try:
            async with filling(search, self._tell, at_once=self._at_once):
                yield
        finally:
            search.reading = listener

    def _tell(self, done: int, total: int) -> None:
        rest = total - done
        self.progress = f"{rest:,} passages to embed ({done / total:.0%})" if rest else ""


HOW_TO_QUIT = "press Ctrl-C again, or Ctrl-D, or type /quit to leave; the session is kept"
KEPT = "the question is kept: /resume sends it again, or ask something else"
# Why an answer ended early.
STOPS = {
    **dict.fromkeys(
        CUT_OFF, "(cut off: the answer reached its token limit; /settings max_tokens changes it)"
    ),
    "repetition": "(stopped: the model began to repeat itself)",
}
INTERRUPTED = 130
# Words that people type to leave, out of habit.
LEAVE_WORDS = ("exit", "quit")


class Chat(Conversation):
    def __init__(
        self, runner: ChatRunner, screen: Screen, approver: KeyboardApprover, *,
        workspace: WorkspaceSource, root: Path,
        attached: dict[str, bool] | None = None, active: str | None = None,
    ) -> None:  # fmt: skip
        super().__init__(
            runner, screen, workspace=workspace, root=root, attached=attached, active=active
        )
        self._shown_warnings: set[str] = set()
        self._asked_targets: set[str] = set()
        self._whole_scope = anyio.CancelScope()
        self._scope: anyio.CancelScope | None = None
        self._approver = approver
        approver.stop = runner.abort
        self._source: MessageSource = SilentSource()
        # Made once per prompt, as it is drawn at every key.
        self._toolbar = ""
        self._indexer: BackgroundIndexer | None = None
        if screen.live and self.session.searcher is not None:
            # If every question is a search, there is no need to wait for the first one.
            is_searched = isinstance(runner, QaRunner)
            self._indexer = BackgroundIndexer(self.session.searcher, at_once=is_searched)

    # -- from outside ----------------------------------------------------------------------------

    def listen_to(self, source: MessageSource) -> None:
        """Set the source of messages and decisions."""
        self._source = self._approver.source = source

    async def talk(self) -> int:
        """Run the conversation until the person leaves; return the exit code."""
        try:
            with self._whole_scope:
                self._shown_warnings.update(f"journal: {damage}" for damage in self.session.damage)
                await greet(self.session, self.screen)
                await self._converse()
                self._say_goodbye()
        except OSError:
            # The terminal or the reader is gone.
            if not self.exit_code:
                raise
        return self.exit_code

    def ask_before_costly_acts(self) -> None:
        """Ask the person at the keyboard before a cache is rewritten at a price. Through a pipe
        there is no one to ask."""
        ask_before_rewrites(self.session, self._approver.agree if self.screen.live else None)

    def interrupt(self) -> None:
        """Ctrl-C: stop the running work; where nothing can be redrawn, stop the whole chat."""
        if not self.screen.live:
            self.end(INTERRUPTED)
        elif self.runner.abort():
            return
        elif self._scope is not None:
            self._scope.cancel()
        else:
            # Nothing is running and no question is open: the key came a moment too late.
            self._source.interrupt()

    def end(self, code: int) -> None:
        """End the chat from outside; a partial answer is kept."""
        self.exit_code = code
        self._whole_scope.cancel()

    def toolbar(self) -> str:
        """The line below the input line."""
        progress = self._indexer.progress if self._indexer else ""
        return f"{self._toolbar} · {progress}" if progress else self._toolbar

    def _describe(self) -> str:
        session = self.session
        used = session.state.requests.sent.tokens if session.state.requests.sent else 0
        window = session.settings.window or session.target().window
        parts = [session.settings.target, f"{used:,} of {window:,} tokens"]
        if self.attached:
            parts.append(f"{len(self.attached)} attached")
        if session.state.library.pinned:
            parts.append(f"{len(session.state.library.pinned)} pinned")
        figures = " · ".join(parts)
        # The name gets the remaining room.
        name = name_of(session.entries) or session.id
        return f"{one_line(name, max(8, self.screen.width - len(figures) - 4))} · {figures}"

    # -- the conversation ------------------------------------------------------------------------

    async def _converse(self) -> None:
        has_warned = False
        while not self.leaving:
            offered, self.offered = self.offered, ""
            if self.screen.live:
                # For completion, which cannot wait.
                await self.members.look_up()
            self._toolbar = self._describe()
            try:
                line = await self._read(offered)
            except EOFError:
                return
            except InputInterrupt:
                if has_warned:
                    return
                has_warned = True
                self.screen.tell(HOW_TO_QUIT)
                continue
            has_warned = False
            if line.strip():
                await self.take(line)

    async def _read(self, offered: str) -> str:
        async with self._indexer.working() if self._indexer else nullcontext():
            return await self._source.read(offered)

    async def take(self, line: str) -> None:
        """Process a line: a command or a message."""
        try:
            with self._interruptible():
                if line.strip() in LEAVE_WORDS:
                    self.screen.tell(f"/quit leaves; //{line.strip()} sends it as a message")
                elif line.startswith("/") and not line.startswith("//"):
                    await run_command(self, line)
                else:
                    await self.ask(_unescape(line))
        except LaminaError as error:
            self.fail(str(error))
        except OSError:
            # The terminal or the disk is gone: the chat cannot continue.
            raise
        except Exception as error:  # noqa: BLE001
            self.fail(f"{type(error).__name__}: {error} (a bug in Lamina; the session is kept)")
        if self.screen.live:
            self.screen.tell("")

    async def ask(self, text: str) -> None:
        """Send a message with its attachments and mentions."""
        attach = await self._attachments(text)
        await self._turn(lambda listen: self.runner.run(text, attach=attach, on_event=listen))

    async def ask_instead(self, question: MessageEntry, text: str) -> None:
        # Mentions of the old text that the new one lacks are dropped too.
        old_mentions = await find_mentions(question.message.text, self.workspace, self.root)
        dropped = {*old_mentions.paths, *self.detached}
        earlier = await self.session.attachments_of(question.id)
        attach = [item for item in earlier if _reference(item) not in dropped]
        attach += await self._attachments(text)
        await self._turn(
            lambda listen: self.runner.edit(question.id, text, attach=attach, on_event=listen)
        )

    async def answer_again(self, answer: str | None, target: str | None) -> None:
        if target is not None:
            await ensure_target(self.session.target(target), ConsoleNotices(self.screen.err))
        await self._turn(
            lambda listen: self.runner.regenerate(answer, target=target, on_event=listen)
        )

    async def _attachments(self, text: str) -> list[Attachable]:
        """Everything sent with a message: the open note, attachments and mentions."""
        mentions = await find_mentions(text, self.workspace, self.root)
        for name in mentions.unknown:
            self.screen.tell(f"@{name} is not a file here; it is sent as text")
        if mentions.guides and not await self.members.has_guides():
            names = ", ".join(map(one_line, mentions.guides))
            self.screen.tell(
                f"{names}: this session has no rules or references to add; sent as text"
            )
        active = [AttachmentSpec(what=self.active, shape="active")] if self.active else []
        paths = self.attached | {path: self.attached.get(path, False) for path in mentions.paths}
        rest = [AttachmentSpec(what=path, essential=vital) for path, vital in paths.items()]
        return [*active, *rest]

    async def go_on(self) -> None:
        await self._turn(lambda listen: self.runner.resume(on_event=listen))

    # -- a turn ----------------------------------------------------------------------------------

    async def _turn(self, begin: Callable[[Listener], Awaitable[Answer]]) -> None:
        view = self._approver.view = TurnView(self.screen, self._shown_warnings)
        answer: Answer | None = None
        with quiet_keys(self.screen), single_errors():
            async with anyio.create_task_group() as group:
                group.start_soon(view.keep_drawing)
                try:
                    answer = await begin(hold_until_final(view.take, self.runner))
                except LaminaError as error:
                    view.finish()
                    self.fail(str(error))
                    if self.session.interrupted or self.session.pending_calls:
                        self.screen.tell(KEPT)
                finally:
                    group.cancel_scope.cancel()
                    view.finish()
        if answer is not None:
            self._conclude(answer, view)
        self._asked_targets.add(self.session.settings.target)

    def _conclude(self, answer: Answer, view: TurnView) -> None:
        """Report how a turn ended, and what it cost."""
        tell = self.screen.tell
        cost = sum_reports(view.reports) if view.reports else None
        if answer.ending == "aborted":
            hint = " before the first word; /resume sends the question again"
            tell(f"(stopped{hint if self.session.interrupted else ''})")
            cost = cost or self._cost_of(answer)
        elif answer.ending == "answered":
            if not answer.text.strip():
                tell("(the model said nothing)")
            if answer.turn and (stop := STOPS.get(answer.turn.stop_reason)):
                tell(stop)
            if notes := render_footnotes(answer):
                self.screen.write("\n" + "\n".join(notes) + "\n")
        else:
            tell("(interrupted; /resume continues, or ask something else)")
        if cost:
            tell(status_line(cost))
        verdict = view.reports[-1].verdict if view.reports else None
        is_first = self.session.settings.target not in self._asked_targets
        is_local = self.session.target().provider == "local"
        if line := cache_line(verdict, loaded_anew=is_local and is_first):
            tell(f"cache: {line}")

    def _cost_of(self, answer: Answer) -> TurnCost | None:
        """The known cost of an answer that was stopped."""
        if answer.turn is None:
            return None
        target = self.session.target(answer.turn.context.target)
        for entry in reversed(self.session.path):
            if isinstance(entry, ReplyEntry) and entry.request == answer.turn.id:
                cost = CostSum().plus(cost_of(entry.usage, target))
                return TurnCost(usage=entry.usage, cost=cost) if entry.usage.input else None
        return None

    # -- inside ----------------------------------------------------------------------------------

    @contextmanager
    def _interruptible(self) -> Iterator[None]:
        with anyio.CancelScope() as self._scope:
            try:
                yield
            finally:
                was_stopped, self._scope = self._scope.cancel_called, None
        if was_stopped:
            self.screen.tell("(stopped)")

    def _say_goodbye(self) -> None:
        if self.screen.live and questions_of(self.session):
            # On its own line, to be copied.
            self.screen.tell("the session is kept; to continue it:")
            self.screen.tell(f"  {how_to_go_on(self.session.id, self.root)}")


def how_to_go_on(session: str, root: Path) -> str:
    """The command that reopens a session from this folder."""
    words = ["lamina", "chat", "-s", session]
    if root.resolve() != Path.cwd():
        words += ["-w", str(root)]
    return shlex.join(words)


def _reference(given: Attachable) -> str:
    return str(given.what) if isinstance(given, AttachmentSpec) else ""


def _unescape(line: str) -> str:
    """Return the message in a line: two leading slashes become one, or none before a word that is
    otherwise not sent at all."""
    if not line.startswith("//"):
        return line
    word = line[2:].strip()
    return word if word in LEAVE_WORDS else line[1:]
