"""`lamina verify` and `lamina repair`: check a session, and copy what can still be read."""

from pathlib import Path

import typer

from lamina.apps.cli.flags import AsJson, SessionName, SessionWorkspace
from lamina.apps.cli.outcome import print_outcome, run_on_session
from lamina.apps.cli.report_text import damage_line
from lamina.apps.cli.terminal_text import print_text, visible
from lamina.apps.views.plain_text import format_json
from lamina.apps.views.session_check import (
    IN_THE_FOLD,
    check_session,
    describe_verification,
    write_repaired_copy,
)
from lamina.apps.views.stored_sessions import StoredSession
from lamina.core.audit.verification import UncoveredRequests, Verification

app = typer.Typer()


def render_verification(verification: Verification) -> str:
    wrong = [check for check in verification.checked if check.problem]
    right = sum(check.is_rebuilt for check in verification.checked)
    lines = [f"{right:,} of {len(verification.checked):,} requests rebuilt byte for byte."]
    lines += [f"- request {check.request} ({check.target}): {check.problem}" for check in wrong]
    lines += [f"- {problem}" for problem in verification.problems]
    lines += map(_uncovered_line, verification.uncovered)
    lines += map(damage_line, verification.damage)
    if any(damage.kind not in IN_THE_FOLD for damage in verification.damage):
        lines.append("`lamina repair` writes a copy of everything that can be read.")
    elif verification.damage:
        lines.append("The rest is lost: the session continues without it.")
    elif verification.state == "sound":
        lines.append("The session is sound.")
    elif verification.state == "not_covered":
        lines.append("The covered parts are correct.")
    return "\n".join(lines)


_PARTS = {
    "texts": "the texts",
    "parameters": "options and parameters",
    "target": "what the model book decides",
    "wire": "the form on the wire",
}


def _uncovered_line(uncovered: UncoveredRequests) -> str:
    count = uncovered.requests
    of = f"{count:,} request{'s' * (count > 1)}"
    return f"- not covered: {_PARTS[uncovered.part]} of {of}: {uncovered.why}"


async def repair_session(stored: StoredSession) -> str:
    copy = await write_repaired_copy(stored)
    # Most places contain the session's name.
    name = "" if copy.session in copy.place else f", as session {copy.session!r}"
    lines = [f"{copy.place}: {copy.entries:,} entries{name}."]
    if copy.is_elsewhere:
        lines.append(
            "It is a file, because the whole database is damaged and should not be written to. "
            "Every command accepts its path; move the database away, and `lamina import` puts the "
            "file into a new one."
        )
    lines.append(f"{stored.place} is unchanged. What was wrong with it:")
    return "\n".join([*lines, *map(damage_line, copy.damage)])


@app.command()
def verify(
    session: SessionName, workspace: SessionWorkspace = Path(), as_json: AsJson = False
) -> None:
    """Rebuild every request of a session from its journal and compare it with what was sent.

    Exits with 1 if anything differs or is damaged. What an older record does not contain cannot be
    proved; it is reported as not covered, neither sound nor broken.
    """
    verification = run_on_session(session, workspace, check_session)
    if as_json:
        text = format_json(describe_verification(verification))
    else:
        text = visible(render_verification(verification))
    print_outcome(text, verification.state != "broken", as_json=as_json)


@app.command()
def repair(session: SessionName, workspace: SessionWorkspace = Path()) -> None:
    """Write a repaired copy next to a damaged session; the damaged file is not touched."""
    print_text(run_on_session(session, workspace, repair_session))
