"""What a table costs in tokens: as its file, as a Markdown table, and as Lamina shows it.

    python bench/tables.py

The tables are drawn, always alike; tokens are OpenAI's (`o200k_base`), counted offline.
"""

import csv
import platform
from collections.abc import Callable
from io import StringIO
from random import Random

from lamina.adapters.providers.tokens import token_ids
from lamina.adapters.workspace.item_reader import READERS
from lamina.core.text import render_item
from lamina.core.text.wording import wording
from lamina.core.values.entry import RENDERER
from versions import version

Row = tuple[object, ...]


def draw(header: str, rows: int, row: Callable[[Random, int], Row]) -> str:
    random, out = Random(header), StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(header.split())
    writer.writerows(row(random, number) for number in range(rows))
    return out.getvalue()


def draw_sale(random: Random, number: int) -> Row:
    day = f"2026-{number % 12 + 1:02}-{number % 28 + 1:02}"
    product = random.choice(["bolt", "nut", "washer, large"])
    return day, random.choice(["north", "south"]), product, random.randint(1, 99), f"{number}.50"


def draw_reading(random: Random, number: int) -> Row:
    return number, f"{20 + random.random() * 5:.3f}", f"{random.random():.4f}"


def draw_person(random: Random, number: int) -> Row:
    note = "likes frogs\nand tea" if number % 10 == 0 else ""
    return number, random.choice(["Ana", "Bo", "Chidi"]), f"p{number}@example.org", note


def draw_line(random: Random, number: int) -> Row:
    return 1_700_000_000 + number, random.choice(["INFO", "WARN"]), random.randint(1, 900), "/items"


TABLES = {
    "3 numbers": draw("a b", 3, lambda _, number: (number, number * number)),
    "50 people": draw("id name address note", 50, draw_person),
    "200 sales": draw("date region product units price", 200, draw_sale),
    "1,000 readings": draw("at temperature humidity", 1_000, draw_reading),
    "20,000 lines of a log": draw("at level ms path", 20_000, draw_line),
}


def to_markdown(text: str) -> str:
    rows = [[cell.replace("\n", "<br>") for cell in row] for row in csv.reader(StringIO(text))]
    rows.insert(1, ["---"] * len(rows[0]))
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


def count(text: str) -> int:
    return len(token_ids("o200k_base", text))


def main() -> None:
    print(f"Python {platform.python_version()}; splintr-rs {version('splintr-rs')}\n")
    print(f"{'tokens':24}{'file alone':>12}{'as a file':>12}{'Markdown':>12}{'as a table':>12}")
    for name, text in TABLES.items():
        plain, table = (READERS[kind]("data.csv", text.encode()) for kind in ("file", "table"))
        texts = (
            text,
            render_item(plain.item, wording(RENDERER)),
            to_markdown(text),
            render_item(table.item, wording(RENDERER)),
        )
        print(f"{name:24}" + "".join(f"{count(shown):>12,}" for shown in texts))


if __name__ == "__main__":
    main()
