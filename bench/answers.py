"""What a model on this machine makes of what Lamina sends: citations, tools, plans.

Questions on a folder of notes (--data: a clone of lyz-code/blue-book, 1,119 notes), each with the
note that has the answer; tasks with five tools, each with the one that is right; and plans. Counted
is what the model did by itself: an answer cites rightly if a number that it wrote leads to that
note (or, where no note has the answer, if it cites none), a call is right if it is the first one,
to the right tool, with the right arguments. Seconds are those of this machine, and of what else
runs on it.
"""

import argparse
import json
import os
import platform
import time
from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import anyio

import lamina
from lamina.adapters.providers.model_book import load_book
from lamina.apps.wiring.runners import Clients, open_agent, open_plan, open_qa
from lamina.core.text.citations import SOURCES_HEADING
from lamina.core.values.event import Event, ToolFinished, ToolStarted
from lamina.core.values.message import ToolCall
from lamina.core.values.tool import Decision, OfferedTool
from versions import version

# What a person would ask, and the end of the path of the note that says it.
NOTES = (
    ("What is tenacity, and how is it installed?", "tenacity.md"),
    ("What does process_exporter report on?", "process_exporter.md"),
    ("Which tool scans Python environments for known vulnerabilities?", "pip_audit.md"),
    ("How do I test that dunst works?", "dunst.md"),
    ("What does yamllint check?", "yamllint.md"),
    ("What is scrum?", "scrum.md"),
)
# Others, written down before a model was asked any of them. The last two no note answers.
MORE_NOTES = (
    ("What is autorandr for?", "autorandr.md"),
    ("What is Apprise?", "apprise.md"),
    ("How do I install python-systemd on Debian?", "python_systemd.md"),
    ("Which tool removes the DRM from ebooks?", "book_drm.md"),
    ("What is Argo CD?", "argocd.md"),
    ("What is an architecture decision record?", "adr.md"),
    ("Which Android apps are there for birding?", "birding.md"),
    ("What is alot, and what should be used instead of it?", "alot.md"),
    ("What is OsmAnd based on?", "osmand.md"),
    ("How is yt-dlp installed?", "yt-dlp.md"),
    ("What is anonymous feedback?", "anonymous_feedback.md"),
    ("What does Geometrize do?", "painting.md"),
    ("What is beets?", "beets.md"),
    ("What is an identity axis?", "axis.md"),
    ("What is the boiling point of tungsten?", ""),
    ("Who won the chess world championship in 1972?", ""),
)


class Task(NamedTuple):
    ask: str
    # None: no tool is needed.
    tool: str | None
    # What has to be among the arguments, in lower case.
    argument: str = ""


TASKS = (
    Task("Is it going to rain in Lisbon today?", "weather", "lisbon"),
    Task("Put milk on the shopping list.", "add_to_list", "milk"),
    Task("How far is it from Bonn to Kiel?", "distance", "kiel"),
    Task("Wake me up at 6:30.", "set_alarm", "6:30"),
    Task("Translate 'good morning' into French.", "translate", "good morning"),
    Task("I need bananas, add them to my list.", "add_to_list", "banana"),
    Task("What is the temperature in Cairo?", "weather", "cairo"),
    Task("Thank you, that was all for today!", None),
)
PLANS = (
    Task("What do my notes say about the status codes of pip-audit?", "localSearch", "pip-audit"),
    Task("What is the weather in Rome, and how far is it from Rome to Naples?", "weather", "rome"),
)
WINDOW = 8_192


def weather(city: str) -> str:
    """Tells the weather in a city."""
    return f"{city}: dry, 19 degrees."


def add_to_list(thing: str) -> str:
    """Adds something to the shopping list."""
    return f"{thing} is on the list."


def distance(start: str, end: str) -> str:
    """Tells how far it is from one place to another."""
    return f"From {start} to {end}: 212 km."


def set_alarm(at: str) -> str:
    """Sets the alarm clock to a time of day."""
    return f"The alarm is set to {at}."


def translate(text: str, language: str) -> str:
    """Translates a text into another language."""
    return f"{text}, in {language}."


TOOLS = (weather, add_to_list, distance, set_alarm, translate)


class Agreement:
    async def decide(self, _call: ToolCall, _tool: OfferedTool) -> Decision:
        return "allow_once"


async def ask_notes(options: dict[str, Any], ask: str, note: str) -> dict[str, Any]:
    async with await open_qa(top=options["top"], **options["opening"]) as qa:
        answer = await qa.run(ask)
    # Where a model cites nothing, all that was found is listed for it: that is none of its own.
    own_words, _, _ = answer.text.partition(SOURCES_HEADING)
    sources = answer.sources if "[^" in own_words else ()
    cited = [source.path for source in sources]
    found = [hit.path for hit in answer.search_result.hits] if answer.search_result else []
    return {
        "answer": answer.text,
        "cited": cited,
        "links": [source.link for source in sources],
        "found": any(_is_of(path, note) for path in found),
        "right": any(_is_of(path, note) for path in cited) if note else not cited,
        "input": answer.usage.input,
        "output": answer.usage.output,
    }


def _is_of(path: str, note: str) -> bool:
    return bool(note) and path.endswith(f"/{note}")


async def run_task(options: dict[str, Any], task: Task, *, plan: bool) -> dict[str, Any]:
    events: list[Event] = []
    how: dict[str, Any] = {"tools": TOOLS, "approver": Agreement(), **options["opening"]}
    opened = await (open_plan(**how) if plan else open_agent(max_requests=4, **how))
    async with opened as runner:
        answer = await runner.run(task.ask, on_event=events.append)
    calls = [event.call for event in events if isinstance(event, ToolStarted)]
    results = [event.result for event in events if isinstance(event, ToolFinished)]
    first = calls[0] if calls else None
    is_right = first is None if task.tool is None else False
    if first is not None and first.name == task.tool:
        is_right = task.argument in first.arguments.lower()
    return {
        "answer": answer.text,
        "ending": answer.ending,
        "calls": [[call.name, call.arguments] for call in calls],
        "failed": sum(result.is_error for result in results),
        "right": is_right,
        "input": answer.usage.input,
        "cached": answer.usage.cached,
        "output": answer.usage.output,
    }


async def timed(ask: str, run: Callable[[], Awaitable[dict[str, Any]]]) -> dict[str, Any]:
    begin = time.perf_counter()
    row = await run()
    row = {"ask": ask, **row, "seconds": round(time.perf_counter() - begin, 1)}
    print(f"{'right' if row['right'] else 'WRONG'} {row['seconds']:>6} s  {ask}", flush=True)
    print(f"      {row.get('calls', row.get('cited'))}  {row['answer']!r}", flush=True)
    return row


async def measure(model: str, data: Path | None, top: int, parts: str) -> dict[str, Any]:
    target = load_book().find(model)
    clients = Clients(slots=1, window=min(target.window, WINDOW))
    settings = lamina.Settings(window=min(target.window, WINDOW))
    store = lamina.MemoryStore()
    common = {"target": model, "providers": clients, "store": store, "settings": settings}
    result: dict[str, Any] = {"model": model, "window": WINDOW, "top": top}
    notes = {"top": top, "opening": common | {"workspace": data}}
    plain = {"opening": common}
    if "a" in parts:
        result["agent"] = [
            await timed(task.ask, partial(run_task, plain, task, plan=False)) for task in TASKS
        ]
    if "p" in parts and data:
        result["plan"] = [
            await timed(task.ask, partial(run_task, notes, task, plan=True)) for task in PLANS
        ]
    if "q" in parts and data:
        result["qa"] = [
            await timed(ask, partial(ask_notes, notes, ask, note)) for ask, note in NOTES
        ]
    if "m" in parts and data:
        result["more"] = [
            await timed(ask, partial(ask_notes, notes, ask, note)) for ask, note in MORE_NOTES
        ]
    return result


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", default="local:qwen2.5-coder-1.5b")
    parser.add_argument("--data", type=Path, help="a folder of notes: without it, tools alone")
    parser.add_argument("--top", type=int, default=4, help="passages for a question")
    parser.add_argument("--parts", default="apqm", help="agent, plan, qa, more: some of apqm")
    parser.add_argument("--json", type=Path, help="where to write all of it")
    options = parser.parse_args()
    print(
        f"{options.model}, xllamacpp {version('xllamacpp')}, lamina {lamina.__version__}, "
        f"Python {platform.python_version()}, {os.cpu_count()} cores, load "
        f"{os.getloadavg()[0]:.1f}, LAMINA_THREADS={os.environ.get('LAMINA_THREADS', '')}"
    )
    result = anyio.run(measure, options.model, options.data, options.top, options.parts)
    for part in ("agent", "plan", "qa", "more"):
        if rows := result.get(part):
            right = sum(row["right"] for row in rows)
            seconds = sum(row["seconds"] for row in rows)
            print(f"{part}: {right} of {len(rows)} right, {seconds:.0f} s")
    if options.json:
        options.json.write_text(json.dumps(result, indent=1, ensure_ascii=False), "utf-8")


if __name__ == "__main__":
    main()
