"""All functions of queries by name."""

from lamina.core.notes.query.functions.constructors import CONSTRUCTORS
from lamina.core.notes.query.functions.lists import LISTS
from lamina.core.notes.query.functions.numbers import NUMBERS
from lamina.core.notes.query.functions.query_function import QueryFunction
from lamina.core.notes.query.functions.texts import TEXTS
from lamina.core.notes.query.functions.utilities import UTILITIES

FUNCTIONS: dict[str, QueryFunction] = {**CONSTRUCTORS, **NUMBERS, **LISTS, **TEXTS, **UTILITIES}
