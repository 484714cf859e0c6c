"""What may stand behind a command of the chat, for completion."""

from collections.abc import Iterable

from lamina.adapters.providers.local.models import LOCAL_MODELS
from lamina.adapters.providers.model_book import load_book
from lamina.apps.cli.chat.conversation import Conversation
from lamina.apps.cli.session_tree import questions_of
from lamina.apps.cli.terminal_text import one_line
from lamina.apps.views.settings import SETTING_TYPES, choices_of, describe_allowed
from lamina.core.values.entry import MessageEntry
from lamina.core.values.item import key_of
from lamina.engine.session.session import Session

Arguments = Iterable[tuple[str, str]]


def list_arguments(chat: Conversation, name: str, words: list[str]) -> Arguments:
    """What may stand at the last of `words`, with what it is. The name `@` means a mention."""
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
            return [("adopt", "take over what changed in the agent's files")]
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
