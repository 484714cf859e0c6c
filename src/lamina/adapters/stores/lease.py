"""Records who has a session open, so that other processes can check.

Law: a process that has ended holds no session. If a running process is wrongly assumed to have
ended, its next write is refused: a mistake costs an error, never an entry.
"""

import os
import platform
import sys
from contextlib import suppress
from functools import cache
from pathlib import Path
from secrets import token_hex

import msgspec
from msgspec import Struct

# How long to trust a holder on another machine, which cannot be checked.
LEASE_S = 600.0
# The openings in this process, except unreferenced sessions.
_open_here: set[str] = set()


class Holder(Struct, frozen=True, kw_only=True):
    """An opening of a session: its machine with boot time, its process with start time, and a token
    for the opening itself."""

    host: str
    boot: str
    pid: int
    start: str
    token: str


def new_holder() -> str:
    """Return a holder for an opening in this process."""
    pid = os.getpid()
    holder = Holder(
        host=_host(), boot=_boot(), pid=pid, start=_start_of(pid) or "", token=token_hex(8)
    )
    text = msgspec.json.encode(holder).decode()
    _open_here.add(text)
    return text


def forget_holder(holder: str) -> None:
    _open_here.discard(holder)


def is_held(holder: str, until: float, now: float) -> bool:
    """Check whether the session is still open: its process is running, or cannot be checked and the
    lease has not expired."""
    if not holder:
        return False
    try:
        owner = msgspec.json.decode(holder, type=Holder)
    except msgspec.MsgspecError:
        return until > now
    if owner.host != _host():
        return until > now
    if owner.boot != _boot():
        return False
    if owner.pid == os.getpid():
        return holder in _open_here
    if sys.platform == "win32":
        return until > now
    return _is_running(owner)


def _is_running(owner: Holder) -> bool:
    try:
        os.kill(owner.pid, 0)
    except PermissionError:
        pass
    except OSError:
        return False
    start = _start_of(owner.pid)
    # Another process may have reused its id.
    return start is None or start == owner.start


def _start_of(pid: int) -> str | None:
    """Return a process's start time in system units; empty for a zombie, None if unavailable."""
    try:
        status = Path(f"/proc/{pid}/stat").read_text("utf-8", "replace")
    except OSError:
        return None
    # The command name may contain spaces and parentheses.
    fields = status.rpartition(")")[2].split()
    return "" if fields[0] in ("Z", "X") else fields[19]


@cache
def _host() -> str:
    """Return this machine's name, with its process namespace, if any."""
    with suppress(OSError):
        return f"{platform.node()} {os.readlink('/proc/self/ns/pid')}"
    return platform.node()


@cache
def _boot() -> str:
    with suppress(OSError):
        return Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    return ""
