"""What a type checker says of `lamina.sync`: the types are there, and wrong names are errors."""

import re
import subprocess
import sys
from pathlib import Path

CODE = """
import lamina
import lamina.sync

session = lamina.sync.open_session("talk")
reveal_type(session)
turn = session.prepare("Q", attach=["a.md"])
reveal_type(turn)
reveal_type(turn.request())
reveal_type(turn.commit({}))
reveal_type(turn.usage)
reveal_type(session.current_turn())
reveal_type(session.settings)
reveal_type(session.update_settings(window=1))
reveal_type(session.fork())
with lamina.sync.open_chat() as chat:
    reveal_type(chat)
    answer = chat.run("Q", on_event=print)
    reveal_type(answer)
    reveal_type(answer.turn)
    reveal_type(answer.text)
    with chat.stream("Q") as events:
        for event in events:
            reveal_type(event.__class__)
            break
        reveal_type(events)
reveal_type(lamina.sync.open_agent())
reveal_type(lamina.sync.open_qa())
reveal_type(lamina.sync.open_plan())
reveal_type(chat.session)
"""
SHOWN = [
    "lamina.sync.session.Session",
    "lamina.sync.session.Turn",
    "dict[str, Any]",
    "lamina.sync.session.Turn",
    "lamina.core.values.usage.Usage | None",
    "lamina.sync.session.Turn | None",
    "lamina.core.values.settings.Settings",
    "lamina.core.values.settings.Settings",
    "lamina.sync.session.Session",
    "lamina.sync.runners.ChatRunner",
    "lamina.sync.runners.Answer",
    "lamina.sync.session.Turn | None",
    "str",
    "lamina.sync.runners.AgentRunner",
    "lamina.sync.runners.QaRunner",
    "lamina.sync.runners.PlanRunner",
    "lamina.sync.session.Session",
]
MISTAKES = """
import lamina.sync

lamina.sync.open_sesion()
session = lamina.sync.open_session()
session.prepair("Q")
session.prepare("Q", atach=[])
session.prepare(1)
session.id = "x"
session.prepare("Q").answer.txt
lamina.sync.open_chat().run("Q").txt
"""


def check(folder: Path, code: str) -> list[str]:
    """What mypy says about a file, in strict mode."""
    (folder / "snippet.py").write_text(code, "utf-8")
    command = [sys.executable, "-m", "mypy", "--strict", "--no-error-summary", "snippet.py"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert not done.stderr, done.stderr
    return done.stdout.splitlines()


def test_the_main_calls_have_the_types_of_this_door(tmp_path: Path) -> None:
    lines = check(tmp_path, CODE)
    shown = [re.sub(r'.*Revealed type is "(.*)"', r"\1", line) for line in lines]
    assert [kind for kind in shown if "event" not in kind.lower()] == SHOWN
    events = [kind for kind in shown if "event" in kind.lower()]
    assert len(events) == 2
    assert "type[lamina.core.values.event.TurnEnded]" in events[0]
    assert events[1].startswith("typing.Iterator[lamina.core.values.event.RequestStarted |")


def test_a_name_that_is_wrong_is_an_error(tmp_path: Path) -> None:
    codes = [line.rpartition("[")[2].rstrip("]") for line in check(tmp_path, MISTAKES)]
    errors = [code for code in codes if "note:" not in code]
    assert errors == [
        "attr-defined", "attr-defined", "call-arg", "arg-type", "assignment", "attr-defined",
        "attr-defined",
    ]  # fmt: skip
