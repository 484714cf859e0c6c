"""`lamina verify` and `lamina repair`: whether a session is sound, and a copy of what is left."""

from lamina.audit.verification import Verification
from lamina.cli.render import damage_line
from lamina.faces.stored_session import StoredSession
from lamina.faces.verdict import IN_THE_FOLD, RepairedCopy


def render_verdict(verdict: Verification) -> str:
    wrong = [check for check in verdict.checked if check.problem]
    right = len(verdict.checked) - len(wrong)
    lines = [f"{right:,} of {len(verdict.checked):,} requests rebuilt byte for byte."]
    lines += [f"- request {check.request} ({check.target}): {check.problem}" for check in wrong]
    lines += [f"- {problem}" for problem in verdict.problems]
    lines += map(damage_line, verdict.damage)
    if any(damage.kind not in IN_THE_FOLD for damage in verdict.damage):
        lines.append("`lamina repair` writes a copy of all that can be read.")
    elif verdict.damage:
        lines.append("What is lost is lost: the session goes on without it.")
    elif verdict.sound:
        lines.append("The session is sound.")
    return "\n".join(lines)


def render_repair(stored: StoredSession, copy: RepairedCopy) -> str:
    return "\n".join(
        (
            f"{copy.path}: {copy.entries:,} entries, as session {copy.session!r}.",
            f"{stored.path} is as it was. What was wrong with it:",
            *map(damage_line, copy.damage),
        )
    )
