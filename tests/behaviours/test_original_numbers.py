"""Every behaviour of the documents has a test here that bears its number."""

import ast
from pathlib import Path

# 33 to 39 are not given to anything.
NUMBERS = {*range(1, 33), *range(40, 44)}


def test_every_behaviour_has_a_test_of_its_number() -> None:
    names = [
        node.name
        for file in Path(__file__).parent.glob("test_*.py")
        for node in ast.parse(file.read_text("utf-8")).body
        if isinstance(node, ast.FunctionDef) and node.name.startswith("test_")
    ]
    numbered = {int(name.split("_")[1]) for name in names if name.split("_")[1].isdigit()}
    assert numbered == NUMBERS
