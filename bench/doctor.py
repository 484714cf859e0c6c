"""DoctorBench: does the doctor say what is true?

    python bench/doctor.py                              # 16 causes x 3 wires x 20 sessions
    python bench/doctor.py --data transcripts           # and real sessions, beside its rivals
    python bench/doctor.py --speed                      # and 300 MB of generated transcripts
    python bench/doctor.py --json figures.json

Causes are planted by `doctor_sessions.py`, which shares no code with the doctor, and each session
is recorded with bodies (B), as a transcript (T) and as usage alone (U). Rivals are run from their
own environment (`pip install 'lamina-context[bench-doctor]'`), on the same files in the same run.
"""

import argparse
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import anyio

from doctor_sessions import (
    CAUSES,
    WIRES,
    PlayedSession,
    iso,
    play_group,
    record_bodies,
    record_transcript,
    record_usage,
)
from lamina.apps.wiring.stores import list_everywhere
from lamina.doctor.collector import collect
from lamina.doctor.doctor_report import DoctorOptions, DoctorReport, report_on
from versions import find_command

RECORDERS = {"B": record_bodies, "T": record_transcript, "U": record_usage}
# Hits may end so far below what was sent.
NEAR = 384
# What changes bytes, so that its place is a path and a byte.
MOVES = (
    "clock", "tools_reordered", "tools_changed", "first_message", "history_edited", "image",
    "thinking", "compaction", "trimmed", "whitespace",
)  # fmt: skip


def examine(*paths: str) -> DoctorReport:
    async def run() -> DoctorReport:
        return report_on(
            await collect(paths, lambda files: files, list_everywhere), DoctorOptions()
        )

    return anyio.run(run)


# -- planted causes ------------------------------------------------------------------------------


def judge_group(
    cause: str, wire: str, sessions: Sequence[PlayedSession]
) -> dict[str, Counter[str]]:
    """What the doctor says of a group of sessions, by the way they were recorded."""
    outcome: dict[str, Counter[str]] = {}
    for form, record in RECORDERS.items():
        with tempfile.TemporaryDirectory() as folder:
            for session in sessions:
                record(session, Path(folder))
            report = examine(folder)
        found = {(f.session, f.request): f for f in report.findings}
        counts: Counter[str] = Counter()
        for session in sessions:
            judge_session(session, found, form, counts)
        outcome[form] = counts
    return outcome


def judge_session(
    session: PlayedSession, found: dict[tuple[str, int], Any], form: str, counts: Counter[str]
) -> None:
    judged = False
    by_agent: dict[str, Any] = {}
    for request in session.requests:
        before = by_agent.get(request.agent)
        by_agent[request.agent] = request
        finding = found.get((session.name, request.number))
        # No more can be lost than was there, and no more than was sent again.
        lost = request.input - request.read
        if before is not None:
            lost = min(lost, (before.end or before.input) - request.read)
        if finding is not None and finding.certainty == "proven" and form != "B":
            counts["proven without bytes"] += 1
        if not request.planted:
            counts["false breaks"] += finding is not None
            counts["silent"] += finding is None
            continue
        if (
            finding is not None
            and finding.certainty == "proven"
            and finding.cause != request.planted
        ):
            counts["proven and wrong"] += 1
        if judged or lost <= NEAR:
            continue
        judged = True
        counts["planted"] += 1
        if finding is None:
            counts["missed"] += 1
            continue
        counts["right cause"] += finding.cause == request.planted
        counts["named"] += request.planted in (finding.cause, *finding.candidates)
        counts["proven"] += finding.certainty == "proven"
        counts["right place"] += place_is_right(session, request, finding, form)


def place_is_right(session: PlayedSession, request: Any, finding: Any, form: str) -> bool:
    place = finding.place
    if form == "B" and request.planted in MOVES:
        return bool((place.segment, place.offset) == (request.place, request.offset))
    if place.start != request.read:
        return False
    earlier = [r for r in session.requests if r.number < request.number]
    near_end = any(abs(r.end - request.read) <= NEAR for r in earlier)
    match place.stopped:
        case "nothing":
            return bool(request.read == 0)
        case "floor":
            return bool(0 < request.read <= session.front + NEAR)
        case "end_of":
            named = [r for r in earlier if r.number == place.request]
            return near_end and all(abs(r.end - request.read) <= NEAR for r in named)
        case _:
            return bool(not near_end and request.read > session.front + NEAR)


def run_planted(count: int) -> dict[str, Any]:
    rows: dict[str, Any] = {}
    sums = {form: Counter[str]() for form in RECORDERS}
    for cause in CAUSES:
        for wire in WIRES:
            outcome = judge_group(cause, wire, play_group(cause, wire, count))
            for form, counts in outcome.items():
                sums[form] += counts
                rows[f"{cause}/{wire}/{form}"] = dict(counts)
    print(f"\n## Planted causes: {len(CAUSES)} causes x {len(WIRES)} wires x {count} sessions\n")
    print(f"{'':<18}{'planted':>8}{'right':>8}{'named':>8}{'proven':>8}{'place':>8}{'missed':>8}")
    for cause in CAUSES:
        for form in RECORDERS:
            cells = Counter[str]()
            for wire in WIRES:
                cells += Counter(rows[f"{cause}/{wire}/{form}"])
            keys = ("planted", "right cause", "named", "proven", "right place", "missed")
            print(f"{cause:<16}{form:<2}" + "".join(f"{cells[key]:>8}" for key in keys))
    figures: dict[str, Any] = {"groups": rows, "forms": {}}
    print()
    for form, counts in sums.items():
        planted = counts["planted"] or 1
        shares = {
            "planted": counts["planted"],
            "right cause": counts["right cause"] / planted,
            "named": counts["named"] / planted,
            "proven of right": counts["proven"] / max(1, counts["right cause"]),
            "right place": counts["right place"] / planted,
            "proven and wrong": counts["proven and wrong"],
            "proven without bytes": counts["proven without bytes"],
            "false breaks": counts["false breaks"],
            "requests without a break": counts["silent"],
        }
        figures["forms"][form] = shares
        print(form, ", ".join(
            f"{name} {value:.1%}" if isinstance(value, float) else f"{name} {value:,}"
            for name, value in shares.items()
        ))  # fmt: skip
    figures["holds"] = holds(figures["forms"])
    print("thresholds:", "all hold" if figures["holds"] else "NOT all hold")
    return figures


def holds(forms: dict[str, Any]) -> bool:
    bodies, transcript = forms["B"], forms["T"]
    wrong = sum(form["proven and wrong"] + form["proven without bytes"] for form in forms.values())
    return bool(
        bodies["right cause"] >= 0.98
        and bodies["proven of right"] >= 0.9
        and bodies["right place"] == 1.0
        and transcript["right place"] >= 0.95
        and wrong == 0
    )


# -- real sessions -------------------------------------------------------------------------------


def run_real(data: Path, rivals: str) -> dict[str, Any]:
    figures: dict[str, Any] = {}
    print(f"\n## Real sessions in {data.name}\n")
    for folder in sorted(path for path in data.iterdir() if path.is_dir()):
        began = time.perf_counter()
        report = examine(str(folder))
        seconds = time.perf_counter() - began
        totals = report.totals
        lost = max(1, totals.lost)
        figures[folder.name] = {
            "sessions": totals.sessions,
            "requests": totals.requests,
            "input cost": round(totals.input_cost or 0.0, 2),
            "lost cost": round(totals.lost_cost or 0.0, 2),
            "lost share": round(totals.lost_share, 4),
            "located": round(totals.located / lost, 4),
            "proven": sum(f.certainty == "proven" for f in report.findings),
            "likely vendor": round(
                sum(f.tokens for f in report.findings if f.blame == "vendor") / lost, 4
            ),
            "seconds": round(seconds, 2),
        }
        print(folder.name, figures[folder.name])
    claude = data / "claude-code"
    if claude.is_dir():
        figures["rivals"] = run_rivals(claude, rivals)
        ours = figures["claude-code"]["input cost"]
        for name, spend in figures["rivals"].items():
            print(f"{name}: ${spend:.2f} against ${ours:.2f}: {abs(spend / ours - 1):.2%} apart")
    return figures


def run_rivals(claude: Path, rivals: str) -> dict[str, float]:
    """The input spend that the others report on the same files."""
    spends: dict[str, float] = {}
    with tempfile.TemporaryDirectory() as home:
        project = Path(home) / ".claude" / "projects" / "p"
        project.mkdir(parents=True)
        for path in claude.glob("*.jsonl"):
            shutil.copy(path, project)
        for name, arguments in {
            "kvleak": ["audit", "--json"],
            "claude-cache-audit": ["--all", "--json"],
        }.items():
            program = Path(rivals) / name
            if not program.exists():
                print(f"{name} is not installed in {rivals}: {find_command(name)}")
                continue
            done = subprocess.run(
                [str(program), *arguments],
                env={"HOME": home, "PATH": os.environ["PATH"]},
                capture_output=True,
                text=True,
                check=False,
            )
            spends[name] = _spend(name, json.loads(done.stdout))
    return spends


def _spend(name: str, report: dict[str, Any]) -> float:
    """What they say the input cost."""
    if name == "kvleak":
        return float(report["cost_usd"])
    return float(report["totals"]["cost"]) - float(report["usage_split"]["output"]["cost"])


# -- speed ---------------------------------------------------------------------------------------


def write_long_session(place: Path, megabytes: float, seed: int) -> None:
    """A transcript with lines as long as real ones: tool results of 20 to 200 kB."""
    rng = random.Random(seed)
    text = "".join(rng.choice("abcdefghij klmnopqrstuvwxyz\\n") for _ in range(200_000))
    at, size, number, total = 1_790_000_000.0, 0, 0, 30_000
    last = None
    with place.open("w", encoding="utf-8") as file:
        while size < megabytes * 1e6:
            number += 1
            result = text[: rng.randint(20_000, 200_000)].replace("\\", "")
            uuid = f"{seed}-{number}"
            shell = {
                "sessionId": f"s{seed}",
                "isSidechain": False,
                "version": "2.1.40",
                "cwd": "/x",
            }
            content = [{"type": "tool_result", "tool_use_id": "t", "content": result}]
            user = {
                "type": "user", "uuid": f"u{uuid}", "parentUuid": last, "timestamp": iso(at),
                "message": {"role": "user", "content": content},
                "toolUseResult": {"stdout": result}, **shell,
            }  # fmt: skip
            added = rng.randint(300, 4000)
            usage = {
                "input_tokens": 3, "cache_read_input_tokens": total, "output_tokens": 100,
                "cache_creation_input_tokens": added,
            }  # fmt: skip
            total += added
            message = {
                "id": f"m{uuid}", "model": "claude-opus-4-6", "role": "assistant", "usage": usage,
                "content": [{"type": "text", "text": text[:800].replace("\\", "")}],
            }  # fmt: skip
            answer = {
                "type": "assistant", "uuid": f"a{uuid}", "parentUuid": f"u{uuid}",
                "timestamp": iso(at + 3), "requestId": f"r{uuid}", "message": message, **shell,
            }  # fmt: skip
            last = f"a{uuid}"
            for line in (json.dumps(user), json.dumps(answer)):
                file.write(line + "\n")
                size += len(line)
            at += 9


def run_speed() -> dict[str, Any]:
    figures: dict[str, Any] = {}
    print("\n## Speed\n")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "many").mkdir()
        for seed in range(60):
            write_long_session(folder / "many" / f"{seed}.jsonl", 5, seed)
        write_long_session(folder / "one.jsonl", 4, 99)
        for label, place in (("300 MB", folder / "many"), ("4 MB", folder / "one.jsonl")):
            script = (
                "import resource, sys, time\nsys.path.insert(0, 'bench')\n"
                "from doctor import examine\n"
                "wall, cpu = time.perf_counter(), time.process_time()\n"
                "report = examine(sys.argv[1])\n"
                "print(report.totals.requests, time.perf_counter() - wall, "
                "time.process_time() - cpu, "
                "resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)\n"
            )
            done = subprocess.run(
                [sys.executable, "-c", script, str(place)],
                capture_output=True,
                text=True,
                check=True,
            )
            requests, seconds, cpu, peak = done.stdout.split()
            began = time.perf_counter()
            command = [str(Path(sys.executable).parent / "lamina"), "doctor", str(place)]
            subprocess.run(command, capture_output=True, check=True)
            whole = time.perf_counter() - began
            figures[label] = {
                "requests": int(requests), "seconds": round(float(seconds), 2),
                "CPU seconds": round(float(cpu), 2), "whole command": round(whole, 2),
                "peak MB": round(int(peak) / 1000),
            }  # fmt: skip
            print(label, figures[label])
    return figures


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--sessions", type=int, default=20, help="of every cause and wire; 0: none")
    parser.add_argument("--data", type=Path, help="a folder of recorded sessions")
    parser.add_argument(
        "--rivals", default=str(Path(sys.executable).parent), help="their bin folder"
    )
    parser.add_argument("--speed", action="store_true")
    parser.add_argument("--json", type=Path, help="write all figures there")
    arguments = parser.parse_args()
    figures: dict[str, Any] = {}
    if arguments.sessions:
        figures["planted"] = run_planted(arguments.sessions)
    if arguments.data:
        figures["real"] = run_real(arguments.data, arguments.rivals)
    if arguments.speed:
        figures["speed"] = run_speed()
    if arguments.json:
        arguments.json.write_text(json.dumps(figures, indent=1), "utf-8")
    if arguments.sessions and not figures["planted"]["holds"]:
        sys.exit(1)


if __name__ == "__main__":
    main()
