"""Processes of `lamina` that have imported it already: each is a fork of one that did so once.

The half second that Python takes to import a command is most of what a short one costs. A fork has
a process of its own all the same: its folder, environment, streams and exit code, and whatever it
imports later. What a command must not import is therefore no business of these (see ALREADY).
"""

import contextlib
import json
import os
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from functools import cache
from importlib import import_module
from pathlib import Path

PROGRAM = Path(sys.executable).parent / "lamina"
MAX_JOB = 1 << 20
# What most commands import once they run; each of the others comes with the command that wants it.
ALREADY = (
    "lamina.apps.cli.app",
    "lamina.apps.cli.context",
    "lamina.apps.cli.doctor_command",
    "lamina.apps.cli.session_commands",
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


def main() -> int:
    from lamina.apps.cli import main as run

    for name in ALREADY:
        import_module(name)

    link = socket.socket(fileno=int(sys.argv[1]))
    while True:
        job, streams, *_ = socket.recv_fds(link, MAX_JOB, 3)
        if not job:
            return 0
        if not (child := os.fork()):
            break
        for stream in streams:
            os.close(stream)
        link.send(json.dumps(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])).encode())
    # From here on it is the command.
    link.close()
    command = json.loads(job)
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
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
