"""A keyboard: one line or several, with history and completion.

Laws: Enter sends, Esc-Enter starts a new line, and pasted text arrives in one piece. Ctrl-C clears
the line; on an empty line it is raised to the caller. A decision is a whole line: no single key of
a sentence decides, nor does text typed before the question, and text typed after it is not a
message.
"""

import os
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from prompt_toolkit import PromptSession
from prompt_toolkit.application import get_app
from prompt_toolkit.completion import Completer
from prompt_toolkit.enums import DEFAULT_BUFFER
from prompt_toolkit.filters import Condition, has_focus
from prompt_toolkit.formatted_text import FormattedText
from prompt_toolkit.history import FileHistory
from prompt_toolkit.input.typeahead import clear_typeahead
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
from prompt_toolkit.keys import Keys
from prompt_toolkit.styles import Style

from lamina.apps.cli.chat.completer import is_command
from lamina.apps.cli.chat.message_source import InputInterrupt, match_answer
from lamina.apps.views.mentions import unfinished_mention

PROMPT, GOES_ON = "› ", "  "
STYLE = Style.from_dict(
    {
        "prompt": "ansicyan bold",
        "bottom-toolbar": "noreverse ansibrightblack",
        "placeholder": "ansibrightblack",
    }
)


class KeptHistory(FileHistory):
    """History that is nice to have: a full disk must not end the chat."""

    def store_string(self, string: str) -> None:
        with suppress(OSError):
            super().store_string(string)

    def load_history_strings(self) -> Any:
        try:
            return super().load_history_strings()
        except OSError:
            return ()


def open_history(path: Path) -> KeptHistory:
    """The input history of a workspace, readable by its owner only."""
    with suppress(OSError):
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        os.close(os.open(path, os.O_CREAT | os.O_WRONLY, 0o600))
    return KeptHistory(str(path))


class Keyboard:
    def __init__(
        self, history: Path, completer: Completer, toolbar: Callable[[], str], **io: Any
    ) -> None:
        self._toolbar = toolbar
        self._io = io
        self._session: PromptSession[str] = PromptSession(
            FormattedText([("class:prompt", PROMPT)]),
            multiline=True,
            prompt_continuation=GOES_ON,
            history=open_history(history),
            completer=completer,
            complete_in_thread=True,
            # Only if there is something to complete: the menu needs room below the line.
            complete_while_typing=Condition(_wants_menu),
            enable_history_search=False,
            key_bindings=_bindings(),
            bottom_toolbar=lambda: FormattedText([("", self._toolbar())]),
            style=STYLE,
            interrupt_exception=InputInterrupt,
            **io,
        )

    async def read(self, default: str = "") -> str:
        return await self._session.prompt_async(
            default=default, handle_sigint=False, set_exception_handler=False
        )

    async def choose(self, question: str, answers: Mapping[str, str]) -> str | None:
        prompt = question
        while True:
            try:
                line = await self._read_alone(prompt)
            except EOFError:
                return None
            answer = match_answer(line, answers)
            if answer is not None:
                return answer
            prompt = f"{_how_to_answer(answers)}\n{question}"

    async def _read_alone(self, question: str) -> str:
        """Read a line from keys pressed while the question is shown, and no others."""
        # A separate prompt per line: without history or completion.
        session: PromptSession[str] = PromptSession(
            question, interrupt_exception=InputInterrupt, **self._io
        )
        _forget_keys(self._session.input)
        try:
            return await session.prompt_async(handle_sigint=False, set_exception_handler=False)
        finally:
            _forget_keys(self._session.input)

    def interrupt(self) -> bool:
        app = self._session.app
        if not app.is_running:
            return False
        app.exit(exception=InputInterrupt())
        return True


def _wants_menu() -> bool:
    document = get_app().current_buffer.document
    if is_command(document.text):
        return True
    return unfinished_mention(document.text_before_cursor) is not None


def _how_to_answer(answers: Mapping[str, str]) -> str:
    *others, last = dict.fromkeys(answers.values())
    return f"type {', '.join(others)} or {last}, then Enter"


def _forget_keys(source: Any) -> None:
    """Drop input that was typed and not read."""
    clear_typeahead(source)
    try:
        import termios
    except ImportError:  # Windows
        return
    if os.isatty(source.fileno()):
        # The terminal may be gone by now.
        with suppress(termios.error):
            termios.tcflush(source.fileno(), termios.TCIFLUSH)


def _bindings() -> KeyBindings:
    bindings = KeyBindings()
    # Not during a history search, which uses these keys itself.
    typing = has_focus(DEFAULT_BUFFER)

    @bindings.add("enter", filter=typing)
    def _(event: KeyPressEvent) -> None:
        buffer = event.current_buffer
        completion = buffer.complete_state and buffer.complete_state.current_completion
        if completion and not is_command(buffer.text):
            # A path was selected in the middle of a message: the message continues.
            buffer.complete_state = None
            return
        buffer.validate_and_handle()

    @bindings.add("escape", "enter", filter=typing)
    def _(event: KeyPressEvent) -> None:
        event.current_buffer.insert_text("\n")

    @bindings.add(Keys.Vt100MouseEvent)
    def _(_event: KeyPressEvent) -> None:
        """Ignore mouse codes: the mouse is off, so they were typed."""

    @bindings.add("c-c", filter=typing)
    def _(event: KeyPressEvent) -> None:
        if event.current_buffer.text:
            event.current_buffer.reset()
        else:
            event.app.exit(exception=InputInterrupt())

    @bindings.add("c-d", filter=typing)
    def _(event: KeyPressEvent) -> None:
        if not event.current_buffer.text:
            event.app.exit(exception=EOFError())
        else:
            event.current_buffer.delete()

    return bindings
