"""What folders bring, and which of it a person trusts."""

import os
from contextlib import suppress
from pathlib import Path
from typing import Any

from anyio.to_thread import run_sync
from msgspec import Struct

from lamina.adapters.files.paths import expand_home
from lamina.apps.views.trusted_hooks import TrustAsker
from lamina.apps.wiring.agent_defaults import AgentDefaults, read_agent_defaults
from lamina.apps.wiring.hook_files import is_hook_file, read_hook_file
from lamina.apps.wiring.trust_lookup import FolderTrust, keep_trust, trust_book
from lamina.core.values.agent import TrustRecord
from lamina.errors import UsageError


class TrustedFolder(Struct, frozen=True, kw_only=True):
    """A trusted folder, and whether its contents are still the same."""

    place: str
    standing: str
    record: TrustRecord


async def look_at_folder(which: str, workspace: Path) -> FolderTrust:
    """Return what an agent (by name or path) or a file of hooks brings, and its trust status.

    Raises:
        UsageError: there is no such agent or file.
    """
    if is_hook_file(which):
        return (await run_sync(read_hook_file, which, workspace)).trust
    return (await read_agent_defaults(which, workspace)).trust


async def list_trusted(workspace: Path) -> tuple[TrustedFolder, ...]:
    """List everything trusted; a folder that no longer exists is `gone`.

    Raises:
        UsageError: the records cannot be read.
    """
    folders: list[TrustedFolder] = []
    for place, record in sorted(trust_book().records().items()):
        try:
            standing = str((await look_at_folder(place, workspace)).standing)
        except (UsageError, OSError):
            standing = "gone"
        folders.append(TrustedFolder(place=place, standing=standing, record=record))
    return tuple(folders)


async def trust_folder(folder: FolderTrust) -> None:
    """Record that the person trusts the folder as it was shown.

    Raises:
        UsageError: the record cannot be written.
    """
    await run_sync(keep_trust, folder)


async def settle_trust(
    agent: AgentDefaults, asker: TrustAsker, *, trust: bool = False
) -> AgentDefaults:
    """Return the agent with what counts of its folder: what the person trusts already, allows with
    `trust`, or approves now."""
    folder = agent.trust
    if folder.counts:
        return agent
    if not trust:
        if not await asker.agree(folder):
            return agent
        if folder.can_be_kept:
            await trust_folder(folder)
    # Use what was shown; the folder is not read again, as it may have changed since.
    return agent.trusted()


def revoke_trust(which: str, workspace: Path) -> str:
    """Stop trusting a folder and return its real path. The folder may no longer exist.

    Raises:
        UsageError: it was not trusted.
    """
    from lamina.apps.wiring.agent_finder import find_agent

    places = [os.path.realpath(expand_home(which))]
    with suppress(UsageError):
        places.append(os.path.realpath(find_agent(which, workspace)))
    for place in reversed(places):
        if trust_book().revoke(place):
            return place
    raise UsageError(f"{which!r} is not trusted; `lamina trust --list` lists trusted folders")


def describe_folder_trust(folder: FolderTrust) -> dict[str, Any]:
    claims = folder.claims
    return {
        "place": claims.place,
        "standing": folder.standing,
        "counts": folder.counts,
        "digest": claims.digest,
        "servers": list(claims.servers),
        "settings": claims.settings,
        "model": claims.model,
        "hooks": list(claims.hooks),
        "files": [
            {"server": file.server, "path": file.path, "digest": file.digest}
            for file in claims.files
        ],
        "lines": list(claims.lines),
        "changes": list(folder.changes()),
        "problem": folder.problem or claims.problem,
    }


def describe_trusted_folder(folder: TrustedFolder) -> dict[str, Any]:
    return {
        "place": folder.place,
        "standing": folder.standing,
        "digest": folder.record.digest,
        "lines": list(folder.record.lines),
        "at": folder.record.at,
    }
