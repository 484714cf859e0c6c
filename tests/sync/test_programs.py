"""Whole programs that use `lamina.sync`: how they are interrupted, how they fork, how they end."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
HEAD = """
import os, signal, sys, threading
import anyio
from tests.fakes.providers import saying, spoken
from tests.sync.scenes import fakes, history, open_chat
import lamina, lamina.sync
from lamina.core.values.event import BlockDelta

# A shell that runs its commands in the background has them ignore Ctrl-C.
signal.signal(signal.SIGINT, signal.default_int_handler)
store = lamina.JsonlStore(sys.argv[1])

def say(*texts):
    print(*texts, flush=True)

def hear(event):
    if isinstance(event, BlockDelta) and event.text == " nine":
        say("waiting")
"""


def start(folder: Path, body: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-W", "error", "-c", HEAD + body, str(folder)],
        cwd=ROOT, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
    )  # fmt: skip


def run(folder: Path, body: str) -> list[str]:
    """What a program printed that ended well, and in time."""
    with start(folder, body) as program:
        out, errors = program.communicate(timeout=60)
    assert (program.returncode, errors) == (0, "")
    return out.splitlines()


def interrupt(program: subprocess.Popen[str]) -> tuple[str, str]:
    """Presses Ctrl-C when the program waits for its model."""
    assert program.stdout is not None
    assert program.stdout.readline() == "waiting\n"
    program.send_signal(signal.SIGINT)
    return program.communicate(timeout=60)


def test_ctrl_c_stops_an_answer_and_keeps_what_came_of_it(tmp_path: Path) -> None:
    body = """
with open_chat([*spoken("Berth nine"), anyio.Event()], saying("Ten."), store=store) as chat:
    try:
        chat.run("Which berth?", on_event=hear)
    except KeyboardInterrupt:
        say("interrupted", chat.running, history(chat.session)[-1])
    say(chat.run("And now?").text)
with lamina.sync.open_session("talk", **fakes(store=store)) as session:
    say([message for _, message in history(session)], session.damage)
"""
    with start(tmp_path, body) as program:
        out, errors = interrupt(program)
    assert (program.returncode, errors) == (0, "")
    assert out.splitlines() == [
        "interrupted False ('assistant', 'Berth nine')",
        "Ten.",
        "['Which berth?', 'Berth nine', 'And now?', 'Ten.'] ()",
    ]


def test_ctrl_c_in_a_stream_stops_the_model(tmp_path: Path) -> None:
    body = """
with open_chat([*spoken("Berth nine"), anyio.Event()], store=store) as chat:
    try:
        with chat.stream("Which berth?") as events:
            for event in events:
                hear(event)
    except KeyboardInterrupt:
        say("interrupted", chat.running, history(chat.session)[-1])
"""
    with start(tmp_path, body) as program:
        out, errors = interrupt(program)
    assert (program.returncode, errors) == (0, "")
    assert out.splitlines() == ["interrupted False ('assistant', 'Berth nine')"]


def test_ctrl_c_that_nobody_catches_ends_the_program(tmp_path: Path) -> None:
    body = """
with open_chat([*spoken("Berth nine"), anyio.Event()], store=store) as chat:
    chat.run("Which berth?", on_event=hear)
"""
    with start(tmp_path, body) as program:
        _, errors = interrupt(program)
    assert program.returncode == -signal.SIGINT
    assert errors.splitlines()[-1] == "KeyboardInterrupt"


@pytest.mark.parametrize(
    "left",
    [
        "session = lamina.sync.open_session('talk', **fakes(store=store)); session.prepare('Q')",
        "chat = open_chat(store=store); chat.run('Q')",
        "chat = open_chat(store=store).__enter__(); chat.run('Q')",
        "stream = open_chat([*spoken('Berth'), anyio.Event()], store=store).stream('Q'); "
        "print(type(next(stream.__enter__())).__name__)",
    ],
)
def test_what_was_not_closed_does_not_keep_a_program_from_ending(tmp_path: Path, left: str) -> None:
    run(tmp_path, f"{left}\n")


def test_threads_that_outlive_the_main_one_can_still_ask(tmp_path: Path) -> None:
    body = """
def ask():
    threading.main_thread().join()
    with open_chat(saying("Nine."), store=store) as chat:
        say(chat.run("Which berth?").text)

lamina.sync.open_session("other", **fakes(store=store))
threading.Thread(target=ask).start()
"""
    assert run(tmp_path, body) == ["Nine."]


def test_a_forked_child_has_a_loop_of_its_own(tmp_path: Path) -> None:
    body = """
import warnings
warnings.simplefilter("ignore", DeprecationWarning)
with open_chat(saying("Nine."), store=store) as chat:
    child = os.fork()
    if child == 0:
        try:
            chat.run("Which berth?")
        except lamina.LaminaError as error:
            say(error)
        with lamina.sync.open_session("child", **fakes(store=store)) as session:
            say(session.prepare("Q").processed_text)
        sys.exit()
    assert os.waitpid(child, 0) == (child, 0)
    say(chat.run("Which berth?").text)
"""
    lines = run(tmp_path, body)
    assert "before the process forked" in lines[0]
    assert lines[1:] == ["Q", "Nine."]


def test_importing_it_is_cheap(tmp_path: Path) -> None:
    code = """
import sys
import lamina.sync
heavy = {"anyio", "numpy", "msgspec", "asyncio", "typer", "jsonschema"} & set(sys.modules)
assert not heavy, heavy
"""
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)


def test_wherever_an_agent_is_interrupted_its_session_is_sound_and_free_again(
    tmp_path: Path,
) -> None:
    body = """
import gc, random
from lamina.core.audit.verification import verify
from tests.fakes.book import FakeBook
from tests.fakes.providers import calling
from tests.sync.scenes import open_agent

class Interruption(BaseException):
    pass

def interrupt(number, frame):
    raise Interruption

@lamina.tool(permission="free")
def tide() -> str:
    "Tells when the water is high."
    return "noon"

signal.signal(signal.SIGALRM, interrupt)
moments = random.Random(7)
interruptions = 0
for _ in range(40):
    scripts = calling(("c1", "tide", {})), saying("At noon, or a little later.")
    try:
        signal.setitimer(signal.ITIMER_REAL, moments.uniform(0.0005, 0.03))
        with open_agent(*scripts, tools=[tide], store=store) as agent:
            agent.run("When?", on_event=lambda event: None)
        signal.setitimer(signal.ITIMER_REAL, 0)
    except Interruption:
        interruptions += 1
        # What came back at that very moment nobody has: it lets go when it is collected.
        gc.collect()
signal.setitimer(signal.ITIMER_REAL, 0)
assert interruptions > 5, interruptions
with open_chat(saying("Nine."), store=store) as chat:
    say(chat.run("Which berth?").text, chat.session.damage)
say(verify(anyio.run(store.read, "talk"), FakeBook()).sound)
"""
    assert run(tmp_path, body) == ["Nine. ()", "True"]
