"""Whether the claims of an agent's folder count.

Laws: a folder's servers, its model and settings that loosen a person's protection count only if the
person trusted their current version: permanently (`lamina trust`), or for this opening. The user's
own agents are always trusted. Nothing inside a folder can say that it is trusted.
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
    """The claims of an agent's folder, and whether the person trusts them. `before` is what they
    trusted there earlier; `problem` is why trust could not be looked up or recorded."""

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
        """Whether a person can trust it permanently."""
        return not self.problem and not self.claims.problem

    def notice(self) -> str:
        """Which claims do not count, and what to do; empty if all of them count."""
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
        """The differences from what was trusted before, line by line."""
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
    """Look up trust in an agent read from `place`, with its servers as they would be started."""
    real = os.path.realpath(place)
    claims = _claims(agent, real, servers, _roots(real, workspace))
    return judge_claims(claims, workspace, trust)


def judge_claims(
    claims: Claims, workspace: str | os.PathLike[str] | None, trust: Trust = False
) -> FolderTrust:
    """Judge whether the person who works in `workspace` trusts claims."""
    real, roots = claims.place, _roots(claims.place, workspace)
    if claims.is_empty:
        return FolderTrust(claims=claims, standing="nothing")
    # Checked first, as a caller may always say so.
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
    """Record that the person trusts the current contents of a folder.

    Raises:
        UsageError: trust cannot be recorded.
    """
    if folder.problem:
        raise UsageError(folder.problem)
    trust_book().record(folder.claims, time.time())


def is_own(place: str | os.PathLike[str]) -> bool:
    """Whether an agent is in the user's data folder, even after links are followed."""
    own = os.path.realpath(data_folder() / "agents")
    return Path(os.path.realpath(place)).is_relative_to(own)


def start_check(
    claims: Claims, workspace: str | os.PathLike[str] | None
) -> "Callable[[ServerConfig], None]":
    """Return a check that refuses to start a server whose files differ from the trusted ones."""
    roots = _roots(claims.place, workspace)
    trusted = {(file.server, file.path): file.digest for file in claims.files}

    def check(server: "ServerConfig") -> None:
        try:
            files = _named_files(server, roots)
        except TooManyFiles:
            return  # the person was warned that the files are unknown
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
    """The folders whose files do not belong to the machine: the agent's, its repository, and last
    the workspace."""
    folder = _folder_of(real)
    return folder, _repository(real), folder if workspace is None else os.path.realpath(workspace)


def _folder_of(real: str) -> str:
    return real if os.path.isdir(real) else os.path.dirname(real)


def _repository(real: str) -> str:
    """The repository that contains a path, or the path's own folder."""
    folder = Path(_folder_of(real))
    around = (parent for parent in (folder, *folder.parents) if (parent / ".git").exists())
    return str(next(around, folder))


def _data_problem(roots: tuple[str, ...], real: str) -> str:
    """Why the data folder cannot record trust: a folder that contains it could write the record
    itself. A home folder is an exception: it contains all of a person's files, and is theirs."""
    data, home = os.path.realpath(data_folder()), _home()
    *folders, workspace = roots
    # Files in the data folder are in its repository as well.
    places = (workspace,) if Path(real).is_relative_to(data) else (*folders, workspace)
    for root in places:
        if Path(data).is_relative_to(root) and not Path(home).is_relative_to(root):
            return (
                f"trust records in {data!r} are ignored because it is inside {root!r}: set "
                f"LAMINA_DATA to a folder elsewhere"
            )
    return ""


if sys.platform == "win32":

    def _home() -> str:
        return os.path.realpath(Path.home())

else:
    import pwd

    def _home() -> str:
        # Not from the environment, which a folder may set.
        try:
            return os.path.realpath(pwd.getpwuid(os.getuid()).pw_dir)
        except KeyError:
            return os.devnull
