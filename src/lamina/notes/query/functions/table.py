"""All functions of queries by name."""

from lamina.notes.query.functions.constructors import CONSTRUCTORS
from lamina.notes.query.functions.lists import LISTS
from lamina.notes.query.functions.numbers import NUMBERS
from lamina.notes.query.functions.query_function import QueryFunction
from lamina.notes.query.functions.texts import TEXTS
from lamina.notes.query.functions.utilities import UTILITIES

FUNCTIONS: dict[str, QueryFunction] = {**CONSTRUCTORS, **NUMBERS, **LISTS, **TEXTS, **UTILITIES}
