"""A process that matches lines against one regular expression and can be killed.

Law: it opens nothing. It reads texts from its input and writes places to its output, as lines of
JSON. It runs without Lamina.
"""

import contextlib
import json
import re
import sys

_MEMORY = 1 << 30


def main() -> None:
    with contextlib.suppress(ImportError, OSError, ValueError):
        import resource

        resource.setrlimit(resource.RLIMIT_AS, (_MEMORY, _MEMORY))
    question = json.loads(sys.stdin.buffer.readline())
    try:
        pattern = re.compile(question["pattern"], re.IGNORECASE if question["ignore_case"] else 0)
    except (re.error, OverflowError, RecursionError, MemoryError) as error:
        _say({"wrong": str(error) or type(error).__name__})
        return
    _say({})
    for line in sys.stdin.buffer:
        _say([_places(pattern, text) for text in json.loads(line)])


def _places(pattern: "re.Pattern[str]", text: str) -> "list[tuple[int, int]]":
    """The matching lines, counted from 0, each with the column of its first match."""
    matches = (pattern.search(line) for line in text.split("\n"))
    return [(number, match.start()) for number, match in enumerate(matches) if match]


def _say(value: object) -> None:
    sys.stdout.buffer.write(json.dumps(value).encode() + b"\n")
    sys.stdout.buffer.flush()


if __name__ == "__main__":
    main()
