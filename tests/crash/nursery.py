"""Children that can be killed, without the price of a Python start for each.

One process imports everything and then forks a child for every line of JSON on its input: the name
of a task in `tests.crash.tasks` and its arguments. It answers with the child's process id, and with
how the child ended.
"""

import json
import os
import subprocess
import sys
import traceback
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]


class Nursery:
    """The parent's side."""

    def __enter__(self) -> "Nursery":
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.crash.nursery"],
            cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1,
        )  # fmt: skip
        return self

    def __exit__(self, *exception: object) -> None:
        assert self._process.stdin
        assert self._process.stdout
        self._process.stdin.close()
        self._process.wait()
        self._process.stdout.close()

    def start(self, task: str, **given: Any) -> int:
        """The process id of a new child."""
        return int(self._ask({"task": task, "given": given}))

    def wait(self, child: int) -> int:
        """How the child ended: its exit code, or minus the signal."""
        return int(self._ask({"wait": child}))

    def _ask(self, order: dict[str, Any]) -> str:
        assert self._process.stdin
        assert self._process.stdout
        self._process.stdin.write(json.dumps(order) + "\n")
        return self._process.stdout.readline()


def main() -> None:
    from tests.crash import tasks

    for line in sys.stdin:
        order = json.loads(line)
        if "wait" in order:
            _, status = os.waitpid(order["wait"], 0)
            answer = os.waitstatus_to_exitcode(status)
        else:
            answer = os.fork()
            if answer == 0:
                _run(getattr(tasks, order["task"]), order["given"])
        sys.stdout.write(f"{answer}\n")
        sys.stdout.flush()


def _run(task: Any, given: dict[str, Any]) -> None:
    """Runs a task in the child, which never comes back into the loop."""
    code = 1
    try:
        task(**given)
        code = 0
    except BaseException:  # noqa: BLE001 - the child says what went wrong and ends
        traceback.print_exc()
    finally:
        sys.stderr.flush()
        os._exit(code)


if __name__ == "__main__":
    main()
