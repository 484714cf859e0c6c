"""Whether what an agent's folder brings counts.

Laws: a folder's servers, its model and settings that loosen what keeps a person safe count only if
the person trusted them as they are: for good (`lamina trust`), or for this opening. One's own
agents are one's own. Nothing inside of a folder can say that it is trusted.
"""

import os
import shlex
import sys
import time
from collections.abc import Callable
from difflib import unified_diff
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from msgspec import Struct

from lamina.adapters.agents.named_files import NamedFiles, TooManyFiles
from lamina.adapters.agents.trusted_claims import TrustBook, find_claims, show_text
from lamina.adapters.providers.local.model_catalogue import LOCAL_MODELS, LOCAL_PREFIX
from lamina.apps.wiring.folders import data_folder
from lamina.core.values.agent import Agent, Claims, NamedFile, Trust, TrustRecord
from lamina.errors import UsageError

if TYPE_CHECKING:
    from lamina.adapters.tools.mcp_client.config import ServerConfig, ServerList

TRUST_FILE = "trust.json"
Standing = Literal["nothing", "own", "given", "recorded", "new", "changed", "unknown"]


class FolderTrust(Struct, frozen=True, kw_only=True):
    """What an agent's folder brings, and how it stands with the person. `before` is what they
    trusted there; `problem` is why trust could not be looked up or kept."""

    claims: Claims
    standing: Standing
    before: TrustRecord | None = None
    problem: str = ""

    @property
    def counts(self) -> bool:
        """Whether the claims count."""
        return self.standing in ("nothing", "own", "given", "recorded")

    @property
    def can_be_kept(self) -> bool:
        """Whether a person can trust it for good."""
        return not self.problem and not self.claims.problem

    def notice(self) -> str:
        """What does not count, and what to do; empty if all of it does."""
        if self.counts:
            return ""
        claims = self.claims
        why = "changed since you trusted it" if self.standing == "changed" else "is not trusted"
        parts: list[str] = []
        if claims.hooks:
            parts.append("its hooks are not run")
        if claims.servers:
            names = ", ".join(map(show_text, claims.servers))
            parts.append(f"its servers ({names}) are not started")
        values = dict(claims.settings) | ({"model": claims.model} if claims.model else {})
        if values:
            what = " and ".join(f"{name} {value!r}" for name, value in values.items())
            parts.append(f"its {what} {'does' if len(values) == 1 else 'do'} not count")
        what = "file" if claims.hooks else "folder"
        text = f"the {what} {claims.place!r} {why}: {', and '.join(parts)}"
        if self.problem or claims.problem:
            return f"{text}; {self.problem or claims.problem}"
        return f"{text}; see what it brings, and trust it, with {trust_command(claims.place)}"

    def changes(self) -> tuple[str, ...]:
        """What differs from what was trusted before, line by line."""
        if self.before is None:
            return ()
        lines = list(unified_diff(self.before.lines, self.claims.lines, lineterm="", n=0))
        return tuple(line for line in lines[2:] if not line.startswith("@@"))


def trust_command(place: str) -> str:
    return f"`lamina trust {shlex.quote(place)}`"


def trust_book() -> TrustBook:
    return TrustBook(data_folder() / TRUST_FILE)


def look_up_trust(
    agent: Agent,
    place: str | os.PathLike[str],
    servers: "ServerList",
    workspace: str | os.PathLike[str] | None,
    trust: Trust = False,
) -> FolderTrust:
    """How an agent stands that was read from `place`, with its servers as they would be started."""
    real = os.path.realpath(place)
    claims = _claims(agent, real, servers, _roots(real, workspace))
    return judge_claims(claims, workspace, trust)


def judge_claims(
    claims: Claims, workspace: str | os.PathLike[str] | None, trust: Trust = False
) -> FolderTrust:
    """How claims stand with the person who works in `workspace`."""
    real, roots = claims.place, _roots(claims.place, workspace)
    if claims.is_empty:
        return FolderTrust(claims=claims, standing="nothing")
    # First of all, as a caller may say it anywhere.
    if trust is True or trust == claims.digest:
        return FolderTrust(claims=claims, standing="given")
    if problem := _data_problem(roots, real):
        return FolderTrust(claims=claims, standing="unknown", problem=problem)
    if is_own(real):
        return FolderTrust(claims=claims, standing="own")
    try:
        before = trust_book().find(real)
    except UsageError as error:
        return FolderTrust(claims=claims, standing="unknown", problem=str(error))
    if before is None:
        return FolderTrust(claims=claims, standing="new")
    is_same = before.digest == claims.digest and not claims.problem
    standing: Standing = "recorded" if is_same else "changed"
    return FolderTrust(claims=claims, standing=standing, before=before)


def keep_trust(folder: FolderTrust) -> None:
    """Remembers that the person trusts a folder as it is.

    Raises:
        UsageError: that cannot be kept.
    """
    if folder.problem:
        raise UsageError(folder.problem)
    trust_book().record(folder.claims, time.time())


def is_own(place: str | os.PathLike[str]) -> bool:
    """Whether an agent is among those of the user's data folder, also once links are followed."""
    own = os.path.realpath(data_folder() / "agents")
    return Path(os.path.realpath(place)).is_relative_to(own)


def start_check(
    claims: Claims, workspace: str | os.PathLike[str] | None
) -> "Callable[[ServerConfig], None]":
    """Refuses to start a server whose files are not those that were trusted, however long ago."""
    roots = _roots(claims.place, workspace)
    trusted = {(file.server, file.path): file.digest for file in claims.files}

    def check(server: "ServerConfig") -> None:
        try:
            files = _named_files(server, roots)
        except TooManyFiles:
            return  # the person was told that they are not known
        now = {(file.server, file.path): file.digest for file in files}
        before = {key: digest for key, digest in trusted.items() if key[0] == server.name}
        for key in sorted(now.keys() | before.keys()):
            if now.get(key) != before.get(key):
                raise UsageError(
                    f"{key[1]!r} changed since it was trusted, so the server is not started; see "
                    f"what changed, and trust it, with {trust_command(claims.place)}"
                )

    return check


def _claims(agent: Agent, real: str, servers: "ServerList", roots: tuple[str, ...]) -> Claims:
    files: list[NamedFile] = []
    problem = ""
    for server in servers.servers:
        try:
            files += _named_files(server, roots)
        except TooManyFiles as error:
            problem = f"{error}, so that it can be trusted for one session only, with --trust"
    return find_claims(
        agent,
        real,
        own_models={"", *(f"{LOCAL_PREFIX}{name}" for name in LOCAL_MODELS)},
        files=files,
        start=os.getcwd(),
        problem=problem,
    )


def _named_files(server: "ServerConfig", roots: tuple[str, ...]) -> tuple[NamedFile, ...]:
    if not server.command:
        return ()
    start = Path(os.path.abspath(server.cwd or os.getcwd()))
    named = NamedFiles(server.name, start, [Path(root) for root in roots])
    return named.read(server.command, server.args, server.env.values())


def _roots(real: str, workspace: str | os.PathLike[str] | None) -> tuple[str, ...]:
    """The folders whose files are not the machine's own: the agent's, its repository, and last the
    workspace."""
    folder = _folder_of(real)
    return folder, _repository(real), folder if workspace is None else os.path.realpath(workspace)


def _folder_of(real: str) -> str:
    return real if os.path.isdir(real) else os.path.dirname(real)


def _repository(real: str) -> str:
    """The repository around a path, or its own folder."""
    folder = Path(_folder_of(real))
    around = (parent for parent in (folder, *folder.parents) if (parent / ".git").exists())
    return str(next(around, folder))


def _data_problem(roots: tuple[str, ...], real: str) -> str:
    """Why the data folder cannot say what is trusted: a folder that holds it could say so itself.
    A home folder holds everything of a person, and is theirs."""
    data, home = os.path.realpath(data_folder()), _home()
    *folders, workspace = roots
    # What is in the data folder is in its repository as well.
    places = (workspace,) if Path(real).is_relative_to(data) else (*folders, workspace)
    for root in places:
        if Path(data).is_relative_to(root) and not Path(home).is_relative_to(root):
            return (
                f"records of trust do not count in {data!r}, as that is inside of {root!r}: set "
                f"LAMINA_DATA to a folder elsewhere"
            )
    return ""


if sys.platform == "win32":

    def _home() -> str:
        return os.path.realpath(Path.home())

else:
    import pwd

    def _home() -> str:
        # Not from the environment, which a folder may have set.
        try:
            return os.path.realpath(pwd.getpwuid(os.getuid()).pw_dir)
        except KeyError:
            return os.devnull
