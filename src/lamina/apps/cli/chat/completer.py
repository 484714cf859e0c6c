"""Completion: commands and their arguments; after an `@`, paths, rules and references."""

from collections.abc import Callable, Iterable

from prompt_toolkit.completion import CompleteEvent, Completer, Completion
from prompt_toolkit.document import Document

from lamina.apps.cli.chat.command_table import COMMANDS
from lamina.apps.cli.terminal_text import one_line
from lamina.apps.views.mentions import Paths, mention, unfinished_mention

# For a command and the words after it: values and their descriptions. For `@`: mentions that are
# not paths.
Arguments = Callable[[str, list[str]], Iterable[tuple[str, str]]]
MENTION = "@"
# The maximum length of a value's description, in columns.
MEANING = 60


def is_command(text: str) -> bool:
    return text.startswith("/") and not text.startswith("//")


class ChatCompleter(Completer):
    def __init__(self, paths: Paths, arguments: Arguments) -> None:
        self._paths = paths
        self._arguments = arguments

    def get_completions(self, document: Document, _event: CompleteEvent) -> Iterable[Completion]:
        text = document.text_before_cursor
        if is_command(document.text):
            yield from self._of_command(text)
        elif (unfinished := unfinished_mention(text)) is not None:
            prefix, length = unfinished
            for value, meaning in self._guides(prefix):
                yield Completion(
                    value, start_position=-length, display_meta=one_line(meaning, MEANING)
                )
            for path in self._paths.match(prefix):
                yield Completion(mention(path), start_position=-length, display=path)

    def _guides(self, prefix: str) -> Iterable[tuple[str, str]]:
        """Rules and references, once part of a name is typed: paths are more common."""
        kind, colon, name = prefix.casefold().partition(":")
        if not kind:
            return
        for value, meaning in self._arguments(MENTION, [prefix]):
            of, _, key = value.casefold().removeprefix("@").partition(":")
            if (colon and of.startswith(kind[:3]) and name in key) or (
                not colon and of.startswith(kind)
            ):
                yield value, meaning

    def _of_command(self, text: str) -> Iterable[Completion]:
        name, space, rest = text[1:].partition(" ")
        if not space:
            for command in COMMANDS.values():
                if command.name.startswith(name):
                    yield Completion(
                        f"/{command.name}",
                        start_position=-len(text),
                        display=f"/{command.name} {command.usage}".rstrip(),
                        display_meta=command.about,
                    )
            return
        slash_command = COMMANDS.get(name)
        words = [rest] if slash_command and slash_command.takes_name else rest.split(" ")
        last = words[-1]
        if slash_command and slash_command.takes_paths and not last.startswith("-"):
            opening = rest.rfind('"') if rest.count('"') % 2 else -1
            prefix, length = (last, len(last))
            if opening >= 0:
                prefix, length = rest[opening + 1 :], len(rest) - opening
            for path in self._paths.match(prefix):
                argument = f'"{path}"' if any(c in path for c in " '\"\\") else path
                yield Completion(argument, start_position=-length, display=path)
            return
        for value, meaning in self._arguments(name, words):
            if last.casefold() in value.casefold():
                yield Completion(
                    value, start_position=-len(last), display_meta=one_line(meaning, MEANING)
                )
