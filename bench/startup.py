"""How long `import lamina` takes, over that of Python alone.

python bench/startup.py [--json FILE]
"""

import argparse
import json
import os
import platform
import subprocess
import sys
import time
from pathlib import Path
from statistics import median

ROUNDS = 15


def run(code: str) -> float:
    start = time.perf_counter()
    # As people have it: compiled once, and kept.
    environment = os.environ | {"PYTHONDONTWRITEBYTECODE": ""}
    subprocess.run([sys.executable, "-c", code], check=True, env=environment)
    return (time.perf_counter() - start) * 1e3


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--json", type=Path, help="write the figures to this file")
    args = parser.parse_args()
    steps = {
        "python": "pass",
        "import lamina": "import lamina",
        "lamina.open_session (all of the engine)": "import lamina; lamina.open_session",
    }
    run("import lamina; lamina.open_session")  # compile once
    # In turns, so that a busy moment hits all of them alike.
    times: dict[str, list[float]] = {name: [] for name in steps}
    for _ in range(ROUNDS):
        for name, code in steps.items():
            times[name].append(run(code))
    base = median(times["python"])
    figures = {
        name: round(median(runs) - base, 1) for name, runs in times.items() if name != "python"
    }
    print(f"Python {platform.python_version()}, {base:.1f} ms by itself; on top of that, ms:")
    for name, value in figures.items():
        print(f"{value:>8.1f}  {name}")
    if args.json:
        args.json.write_text(json.dumps({"python_ms": base, "ms": figures}, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
