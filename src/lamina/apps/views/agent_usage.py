"""What became of an agent's rules, references and tools, over its sessions.

Law: a session that cannot be read costs its own turns and nothing else, and is named.
"""

import csv
import io
from collections.abc import Callable, Iterable, Sequence

from msgspec import Struct
from msgspec.structs import asdict

from lamina.apps.views.plain_text import format_json
from lamina.core.audit.usage import AgentUse, TurnUse, agent_of, read_turns, sum_use
from lamina.core.journal import Journal
from lamina.core.ports import JournalStore
from lamina.core.values.entry import SessionEntry
from lamina.errors import LaminaError, UsageError

# What a spreadsheet would take for a formula.
_FORMULA = ("=", "+", "-", "@", "\t", "\r")
_COLUMNS = (
    "agent", "item", "turns", "always", "manual", "agent_mode", "chosen", "score", "used",
    "needed", "since", "sessions", "suggestion",
)  # fmt: skip


Track = Callable[[Sequence[str]], Iterable[str]]


class UnreadSession(Struct, frozen=True, kw_only=True):
    """A session of which something could not be read. `counted` says that the rest was."""

    session: str
    problem: str
    counted: bool


class UsageReport(Struct, frozen=True, kw_only=True):
    agents: tuple[AgentUse, ...] = ()
    unread: tuple[UnreadSession, ...] = ()


async def collect_usage(store: JournalStore, agent: str | None, track: Track = iter) -> UsageReport:
    """The use of one agent's items, or of each agent's, over all sessions of a store. `track` is
    given them, and may show how far it is.

    Raises:
        UsageError: sessions there are, and none names the agent.
    """
    sessions = await store.sessions()
    turns: dict[str, list[TurnUse]] = {}
    unread: list[UnreadSession] = []
    for session in track(sessions):
        try:
            journal = await store.read(session)
        except (LaminaError, OSError) as error:
            unread.append(UnreadSession(session=session, problem=str(error), counted=False))
            continue
        name = agent_of(journal)
        is_counted = agent is None or name == agent
        # Where its beginning is lost, nobody can tell whose session it is.
        if journal.damage and (is_counted or not name):
            problem = "; ".join(map(str, journal.damage))
            unread.append(UnreadSession(session=session, problem=problem, counted=is_counted))
        if not is_counted:
            turns.setdefault(name, [])
            continue
        turns.setdefault(name, []).extend(
            read_turns(journal, inherited=_origin(journal) not in sessions)
        )
    if agent is not None and agent not in turns:
        raise _nobody(agent, sorted(turns), unread)
    names = sorted(turns) if agent is None else [agent]
    uses = (sum_use(name, turns[name]) for name in names)
    return UsageReport(
        agents=tuple(use for use in uses if use.turns or agent is not None), unread=tuple(unread)
    )


def _origin(journal: Journal) -> str:
    """The session that this one was forked from."""
    header = next(iter(journal.entries.values()), None)
    return header.forked_from if isinstance(header, SessionEntry) else ""


def _nobody(agent: str, others: Sequence[str], unread: Sequence[UnreadSession]) -> UsageError:
    names = ", ".join(repr(other) for other in others if other) or "none"
    gap = f"; {len(unread)} could not be read" if unread else ""
    return UsageError(
        f"no session of this workspace was opened with the agent {agent!r}; "
        f"agents that were: {names}{gap}. -w DIR looks in another workspace"
    )


def write_json(collected: UsageReport) -> str:
    return format_json(collected) + "\n"


def write_csv(collected: UsageReport) -> str:
    """A row an item; what was not read is in the JSON only."""
    out = io.StringIO()
    table = csv.DictWriter(out, _COLUMNS, lineterminator="\n")
    table.writeheader()
    for agent in collected.agents:
        for use in agent.items:
            row = asdict(use) | {"agent": _plain(agent.agent), "agent_mode": use.agent}
            table.writerow(row | {"score": "" if use.score is None else f"{use.score:.4f}"})
    return out.getvalue()


def _plain(text: str) -> str:
    return f"'{text}" if text.startswith(_FORMULA) else text
