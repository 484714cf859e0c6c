"""What `chat`, `ask` and `rpc` share: a runner for a session of a workspace, and its model."""

from pathlib import Path

from msgspec import Struct
from rich.console import Console

from lamina.cli.finding import find_session
from lamina.cli.models import ensure_model
from lamina.engine.runner import AgentRunner
from lamina.ports import Approver
from lamina.providers.book import load_book
from lamina.providers.local.catalogue import is_path
from lamina.values.settings import Settings, Target
from lamina.wiring import default_target
from lamina.wiring.running import Clients, open_agent

SYSTEM = (
    "You are a helpful assistant. Answer from what is attached where you can, and say so if it "
    "does not tell."
)


class RunOptions(Struct, frozen=True, kw_only=True):
    """How a person wants to talk: `session` is an id or the beginning of one, to go on with it."""

    workspace: Path = Path()
    session: str | None = None
    target: str | None = None
    system: str = ""
    mcp: Path | None = None
    settings: Settings | None = None
    max_requests: int = 20


async def open_runner(
    options: RunOptions, console: Console, *, approver: Approver | None = None
) -> AgentRunner:
    """The runner; an embedded model that is not on this machine is fetched, with a progress bar on
    `console`.

    Raises:
        UnknownSession: there is no such session.
        SessionBusy: it is open elsewhere.
        ModelMissing: the model cannot be had.
    """
    session = options.session
    if session is not None:
        session = (await find_session(session, options.workspace)).session
    else:
        # Before there is a session: one that nobody can talk to would only be in the way.
        wanted = options.target or (options.settings.target if options.settings else "")
        await ensure_target(load_book().find(wanted or default_target()), console)
    if options.target is not None:
        load_book().find(options.target)
    system = options.system or ("" if session else SYSTEM)
    # One person, one conversation: a slot more would cost memory for nothing. What the model read
    # is kept for the next command, as the session is.
    clients = Clients(slots=1, remember=True)
    runner = await open_agent(
        session,
        system=system,
        workspace=options.workspace,
        target=options.target,
        settings=options.settings,
        mcp=options.mcp,
        approver=approver,
        max_requests=options.max_requests,
        providers=clients,
    )
    runner.closing.append(clients.aclose)
    try:
        await ensure_target(runner.session.target(), console)
    except BaseException:
        await runner.close()
        raise
    return runner


async def ensure_target(target: Target, console: Console) -> None:
    """Fetches the model of a target, if it is one that can be fetched and is not here.

    Raises:
        ModelMissing: it cannot be had.
    """
    if target.provider == "local" and not is_path(target.model):
        await ensure_model(target.model, console)
