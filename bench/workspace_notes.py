"""Generated notes for the workspace benchmark: the same ones for the same number, on any machine.

About 1.5 kB each, as people write them: frontmatter on most, headings, paragraphs and lists, links
to other notes, tags, now and then code. The sentences are from Python's own manual. Each note holds
one word that no other note has, so that what is searched can be known to be found.
"""

import random
import re
from collections.abc import Iterator
from pathlib import Path
from pydoc_data.topics import topics

AREAS = ("projects", "people", "reading", "journal", "cooking", "travel", "garden", "work")
TAGS = ("idea", "todo", "project/alpha", "project/beta", "book", "person", "recipe", "draft")
# How many notes are in a folder, on average.
PER_FOLDER = 60
SEED = 7


def sentences() -> list[str]:
    """Plain sentences of Python's manual."""
    manual = re.sub(r"\s+", " ", " ".join(topics[name] for name in sorted(topics)))
    matches = re.findall(r"[A-Z][a-z][^.*|>=~]{30,180}\.(?= [A-Z])", manual)
    return sorted({*matches})


def path_of(number: int) -> str:
    folder = number // PER_FOLDER
    area = AREAS[folder % len(AREAS)]
    return f"{area}/{area}-{folder // len(AREAS):04}/note {number:06}.md"


def needle(number: int) -> str:
    """The word of one note alone: letters only, as words are."""
    return "q" + "".join(
        "bcdfghjklm"[int(digit)] + "aeiouaeiou"[int(digit)] for digit in f"{number}"
    )


def make_note(number: int, total: int, pool: list[str]) -> str:
    draw = random.Random(f"{SEED} {number}")
    lines: list[str] = []
    if draw.random() < 0.6:
        tags = ", ".join(draw.sample(TAGS, 2))
        lines += ["---", f"tags: [{tags}]", f"created: 2026-{draw.randint(1, 12):02}-11"]
        if draw.random() < 0.3:
            lines += ["aliases:", f"  - Other {number}"]
        lines += ["---", ""]
    lines += [f"# Note {number}", "", f"{' '.join(draw.sample(pool, 2))} {needle(number)}.", ""]
    for section in range(draw.randint(2, 4)):
        lines += [f"## {' '.join(draw.choice(pool).split()[:4])}", ""]
        lines += [" ".join(draw.sample(pool, draw.randint(2, 5))), ""]
        match draw.randrange(4):
            case 0:
                lines += [f"- {line}" for line in draw.sample(pool, 2)] + [""]
            case 1:
                other = draw.randrange(total)
                lines += [f"See [[note {other:06}]] and #{draw.choice(TAGS)}.", ""]
            case 2 if section:
                lines += ["```python", f"value = {draw.randrange(1000)}", "print(value)", "```", ""]
    return "\n".join(lines)


def make_notes(folder: Path, total: int) -> int:
    """Writes them, and says how many bytes they have."""
    pool, size = sentences(), 0
    for number in range(total):
        path = folder / path_of(number)
        if not number % PER_FOLDER:
            path.parent.mkdir(parents=True, exist_ok=True)
        data = make_note(number, total, pool).encode()
        path.write_bytes(data)
        size += len(data)
    return size


def questions(total: int, number: int = 20) -> Iterator[tuple[str, str]]:
    """Questions, each with the path of the note that has to be found."""
    pool, draw = sentences(), random.Random(SEED)
    for _ in range(number):
        place = draw.randrange(total)
        words = " ".join(draw.choice(pool).split()[:3])
        yield f"What about {needle(place)}? {words}", path_of(place)
