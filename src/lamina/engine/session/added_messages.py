"""Messages that an application adds to history without asking anything."""

from lamina.core.assembly.page import Page
from lamina.core.codec import require_text
from lamina.core.journal import awaits_results
from lamina.core.values.message import Message, Role, Text
from lamina.core.values.patch import MessagesCachedAppend, Patch
from lamina.errors import TurnStateError, UsageError

ADDED = "session.add_message"


def add_message(page: Page, text: str, *, role: Role, custom_type: str, shown: bool) -> None:
    """Writes a message down on `page`, behind those of history.

    Raises:
        TurnStateError: a turn is under way.
        UsageError: the message is blank, or of the role of a tool.
    """
    require_text(text, "the message")
    if not text.strip():
        raise UsageError("a message needs a text; this one is blank")
    if role not in ("user", "assistant"):
        raise UsageError(f"a message is of the role 'user' or 'assistant', not {role!r}")
    if page.state.requests.open is not None or awaits_results(page.state):
        problem = "a turn is under way, and nothing can be added to it; send it with a runner's"
        raise TurnStateError(f"{problem} `send_message`, or add it behind the answer")
    message = Message(role=role, blocks=(Text(text),), custom_type=custom_type, shown=shown)
    page.transform(ADDED, Patch(ops=(MessagesCachedAppend(messages=(message,)),)))
