"""The greeting of a chat: for a new session, or the state of an old one."""

from lamina.adapters.providers.model_book import DEFAULT_TARGET, LOCAL
from lamina.apps.cli.report_text import describe_damage
from lamina.apps.cli.screen import Screen
from lamina.apps.cli.terminal_text import one_line
from lamina.apps.wiring.clients import Clients
from lamina.core.audit.session_totals import name_of
from lamina.core.values.entry import MessageEntry
from lamina.core.values.settings import Target
from lamina.engine.session.session import Session, core_of
from lamina.errors import LaminaError


async def greet(session: Session, screen: Screen) -> None:
    """Print what a person should know before the first question."""
    messages = [entry for entry in session.path if isinstance(entry, MessageEntry)]
    questions = [entry for entry in messages if entry.message.role == "user"]
    workspace = session.state.session.workspace or "no workspace"
    if not questions:
        target = session.settings.target
        screen.tell(f"{target} · {workspace} · session {session.id} · /help lists commands")
    else:
        turns = f"{len(questions)} question{'s' * (len(questions) > 1)}"
        name = one_line(name_of(session.entries), 60)
        screen.tell(f"{name} · {turns} · {session.settings.target} · session {session.id}", "bold")
    for damage in session.damage:
        screen.warn(f"damaged: {describe_damage(damage)}")
    if session.damage:
        screen.tell(f"`lamina repair {session.id}` writes a repaired copy")
    if problem := await why_no_answer(session.target()):
        screen.warn(problem)
    if questions:
        await _show_last(session, screen, messages)


async def _show_last(session: Session, screen: Screen, messages: list[MessageEntry]) -> None:
    width = max(20, screen.width - 4)
    place = max(place for place, entry in enumerate(messages) if entry.message.role == "user")
    screen.tell(f"› {one_line(messages[place].message.text, width)}")
    answers = [entry for entry in messages[place + 1 :] if entry.message.role == "assistant"]
    if answers and answers[-1].message.text.strip():
        mark = " (stopped)" if answers[-1].interrupted else ""
        screen.tell(f"  {one_line(answers[-1].message.text, 3 * width)}{mark}")
    if not (session.interrupted or session.pending_calls):
        return
    try:
        turn = await core_of(session).turns.current()
    except LaminaError as error:
        screen.warn(f"the last turn cannot be continued: {error}; ask something else")
        return
    if turn is None:
        return
    if session.pending_calls:
        names = ", ".join(one_line(call.name) for call in session.pending_calls)
        screen.warn(f"interrupted: calls of {names} are pending. /resume continues with them")
    else:
        screen.warn("interrupted: this question was never answered. /resume sends it again")
    screen.tell("or type something else")


async def why_no_answer(target: Target) -> str:
    """Return why a target cannot answer, and what to do about it; empty if it can. Nothing is sent
    anywhere, and an embedded model is not loaded."""
    if target.provider == LOCAL:
        return ""
    try:
        await Clients().provider(target)
    except LaminaError as error:
        return (
            f"no model can answer: {error}; or use /model {DEFAULT_TARGET} for the embedded model"
        )
    return ""
