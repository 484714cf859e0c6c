"""Processes of `lamina` that have imported it already: each is a fork of one that did so once.

The half second that Python takes to import a command is most of what a short one costs. A fork has
a process of its own all the same: its folder, environment, streams and exit code, and whatever it
imports later. What a command must not import is therefore no business of these (see ALREADY).
"""

import contextlib
import fcntl
import gc
import json
import os
import socket
import subprocess
import sys
import tempfile
import termios
import time
from collections.abc import Mapping
from functools import cache
from importlib import import_module
from pathlib import Path

PROGRAM = Path(sys.executable).parent / "lamina"
MAX_JOB = 1 << 20
# What most commands import once they run; each of the others comes with the command that wants it.
ALREADY = (
    "annotated_types",
    "anyio._backends._asyncio",
    "lamina.adapters.providers.wires.llamacpp",
    "lamina.adapters.stores.sqlite",
    "lamina.apps.cli.app",
    "lamina.apps.cli.context",
    "lamina.apps.cli.doctor_command",
    "lamina.apps.cli.session_commands",
    "lamina.apps.wiring.file_tools",
    "platformdirs.unix",
    "pydantic.type_adapter",
    "pydantic.types",
    "rich.markdown",
    "rich.table",
    "splintr",
    "typer._adapters",
)


@cache
def start_parent() -> tuple[socket.socket, subprocess.Popen[bytes]]:
    """The process that is forked; it ends with this one, whose end of the link is closed then."""
    here, there = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with there:
        number = there.fileno()
        parent = subprocess.Popen([sys.executable, __file__, str(number)], pass_fds=[number])
    return here, parent


def run_fork(
    *arguments: str, cwd: Path, env: Mapping[str, str], stdin: str
) -> subprocess.CompletedProcess[str]:
    """`subprocess.run` of the installed command, with its output kept as text."""
    link, _ = start_parent()
    job = json.dumps({"arguments": arguments, "cwd": str(cwd), "env": dict(env)}).encode()
    with (
        tempfile.TemporaryFile() as given,
        tempfile.TemporaryFile() as out,
        tempfile.TemporaryFile() as err,
    ):
        given.write(stdin.encode())
        given.seek(0)
        socket.send_fds(link, [job], [given.fileno(), out.fileno(), err.fileno()])
        code = json.loads(link.recv(MAX_JOB))
        texts = []
        for stream in (out, err):
            stream.seek(0)
            texts.append(stream.read().decode().replace("\r\n", "\n"))
    return subprocess.CompletedProcess([str(PROGRAM), *arguments], code, *texts)


def start_on_terminal(
    *arguments: str, cwd: Path, env: Mapping[str, str], terminal: int
) -> tuple[int, socket.socket]:
    """Starts the command in front of a terminal, which is closed here: its process id, and where
    its exit code is read once it has ended."""
    link, _ = start_parent()
    job = json.dumps({"arguments": arguments, "cwd": str(cwd), "env": dict(env)}).encode()
    here, there = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with there:
        socket.send_fds(link, [job], [terminal, there.fileno()])
        os.close(terminal)
    return json.loads(here.recv(MAX_JOB)), here


def fork_on_terminal(terminal: int, report: int) -> int:
    """Forks a process that waits for the command and reports how it ended: 0 in the command."""
    if keeper := os.fork():
        return keeper
    if child := os.fork():
        os.close(terminal)
        os.write(report, json.dumps(child).encode())
        code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        with contextlib.suppress(OSError):
            os.write(report, json.dumps(code).encode())
        os._exit(0)
    os.setsid()
    fcntl.ioctl(terminal, termios.TIOCSCTTY, 0)
    os.dup2(terminal, report)
    return 0


def reap() -> None:
    """Lets go of those that waited for a command on a terminal and have ended."""
    with contextlib.suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass


def main() -> int:
    from lamina.apps.cli import main as run

    for name in ALREADY:
        import_module(name)
    # What is here already is left out when a fork looks for garbage: it shares these pages.
    gc.freeze()

    link = socket.socket(fileno=int(sys.argv[1]))
    while True:
        job, streams, *_ = socket.recv_fds(link, MAX_JOB, 3)
        if not job:
            return 0
        reap()
        is_terminal = len(streams) == 2
        if not (child := fork_on_terminal(*streams) if is_terminal else os.fork()):
            break
        for stream in streams:
            os.close(stream)
        if not is_terminal:
            link.send(json.dumps(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])).encode())
    # From here on it is the command.
    link.close()
    command = json.loads(job)
    for number, stream in enumerate([streams[0], *streams] if is_terminal else streams):
        os.dup2(stream, number)
    for stream in streams:
        os.close(stream)
    os.chdir(command["cwd"])
    os.environ.clear()
    os.environ.update(command["env"])
    time.tzset()
    encoding = "utf-8"
    sys.stdin = open(0, encoding=encoding, closefd=False)  # noqa: SIM115
    sys.stdout = open(1, "w", encoding=encoding, closefd=False)  # noqa: SIM115
    sys.stderr = open(  # noqa: SIM115
        2, "w", encoding=encoding, errors="backslashreplace", buffering=1, closefd=False
    )
    sys.argv = [str(PROGRAM), *command["arguments"]]
    sys.path[0] = str(PROGRAM.parent)
    run()
    return 0


if __name__ == "__main__":
    with contextlib.suppress(KeyboardInterrupt):
        sys.exit(main())
