"""What only some systems have is not needed to load Lamina."""

import subprocess
import sys

# Everything that the base brings is loaded first: what is tested is our own code.
SCRIPT = """
import asyncio, multiprocessing.connection, os, pkgutil, selectors, sqlite3, subprocess, sys, types
import anyio, anyio._backends._asyncio, anyio.from_thread, anyio.to_thread, jsonschema, markdown_it
import msgspec, platformdirs, rich.console, rich.live, rich.markdown, rich.progress, rich.status
import typer, yaml

sys.platform = "win32"
gone = ("fcntl", "grp", "pty", "pwd", "readline", "resource", "termios", "tty")
sys.modules.update(dict.fromkeys(gone))
sys.modules["msvcrt"] = types.ModuleType("msvcrt")
for name in ("O_CLOEXEC", "O_DIRECTORY", "O_NOCTTY", "O_NOFOLLOW", "O_NONBLOCK", "fchmod", "fork",
             "getuid", "killpg", "pread", "sched_getaffinity"):
    delattr(os, name)

import lamina

rooms = ("apps.cli", "apps.views", "apps.wiring", "adapters.stores", "engine.session",
         "adapters.workspace", "adapters.files", "adapters.agents", "adapters.formats",
         "adapters.tools", "engine.runners", "sync")
extras = ("lamina.apps.views.search", "lamina.apps.cli.chat.keyboard",
          "lamina.apps.cli.chat.completer", "_child")
loaded = 0
for room in rooms:
    package = __import__(f"lamina.{room}", fromlist=["x"])
    for module in pkgutil.walk_packages(package.__path__, f"lamina.{room}."):
        if not any(part in module.name for part in extras):
            __import__(module.name)
            loaded += 1
print(loaded)
"""


def test_the_base_loads_without_what_windows_does_not_have() -> None:
    done = subprocess.run([sys.executable, "-c", SCRIPT], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
    assert int(done.stdout) > 150
