"""What an editor and `help()` show: every public name begins with a sentence of its own."""

import ast
import inspect
import pydoc
import re
from typing import Any

import pytest
from tests.public.faces import SOURCE, public_members, public_names

import lamina

# It begins with a capital, says something, and ends.
SENTENCE = re.compile(r"^[A-Z].{8,}?[.:;](?:\s|$)", re.DOTALL)


def _own_doc(value: Any) -> str:
    """The docstring that was written for it: not that of a base, nor of a library."""
    if isinstance(value, property):
        value = value.fget
    if inspect.isclass(value):
        return inspect.cleandoc(vars(value).get("__doc__") or "")
    return inspect.cleandoc(inspect.unwrap(value).__doc__ or "")


def _member_doc(owner: type, name: str) -> str:
    """What is said of a member by its class, or by the port of ours that the class implements."""
    for base in owner.__mro__:
        if name in vars(base) and (base is owner or base.__module__.startswith("lamina.")):
            text = _own_doc(inspect.getattr_static(base, name))
            if text or not _has_port(owner):
                return text
    return ""


def _has_port(owner: type) -> bool:
    return any(base.__module__.startswith("lamina.core.ports") for base in owner.__mro__[1:])


def _is_explained(value: Any) -> bool:
    return inspect.isclass(value) or inspect.isfunction(value)


def test_every_public_class_function_and_error_begins_with_a_sentence_of_its_own() -> None:
    silent = {
        f"{value.__module__}.{value.__qualname__}"
        for _, value in public_names()
        if _is_explained(value) and not SENTENCE.match(_own_doc(value))
    }
    assert not silent, "\n".join(sorted(silent))


def test_every_public_method_and_property_begins_with_a_sentence_of_its_own() -> None:
    silent = {
        f"{owner.__module__}.{owner.__qualname__}.{name}"
        for _, owner in public_names()
        if inspect.isclass(owner)
        for name, _ in public_members(owner)
        if not SENTENCE.match(_member_doc(owner, name))
    }
    assert not silent, "\n".join(sorted(silent))


def test_no_two_errors_say_the_same() -> None:
    sentences = [
        _own_doc(value).split(". ")[0]
        for name, value in public_names()
        if name.startswith("lamina.errors.")
    ]
    assert len(sentences) == len(set(sentences)) > 20


def test_the_tree_of_errors_has_all_of_them_below_their_bases() -> None:
    drawn: dict[str, str] = {}
    above: list[str] = []
    for line in (lamina.errors.__doc__ or "").splitlines():
        if match := re.match(r"^([ │├└─]*)(\w+)", line.removeprefix("    ")):
            depth = len(match[1]) // 4
            if match[2] == "LaminaError" or depth:
                above[depth:] = [match[2]]
                drawn[match[2]] = above[depth - 1] if depth else "Exception"
    errors = {value for name, value in public_names() if name.startswith("lamina.errors.")}
    assert drawn == {error.__name__: error.__base__.__name__ for error in errors}


@pytest.mark.parametrize(
    ("module", "owner"),
    [
        ("core/values/settings.py", "Settings"),
        ("core/values/selection.py", "SearchSettings"),
        ("core/values/envelope.py", "Options"),
    ],
)
def test_every_setting_is_described_below_its_name(module: str, owner: str) -> None:
    tree = ast.parse((SOURCE / module).read_text("utf-8"))
    (record,) = [
        node for node in tree.body if isinstance(node, ast.ClassDef) and node.name == owner
    ]
    described = [
        field.target.id
        for field, text in zip(record.body, record.body[1:], strict=False)
        if isinstance(field, ast.AnnAssign)
        and isinstance(field.target, ast.Name)
        and isinstance(text, ast.Expr)
        and isinstance(text.value, ast.Constant)
        and SENTENCE.match(inspect.cleandoc(str(text.value.value)))
    ]
    (public,) = {value for name, value in public_names() if name.endswith(f".{owner}")}
    assert described == list(public.__struct_fields__)


def test_help_on_the_package_begins_with_every_public_name() -> None:
    text = pydoc.plain(pydoc.render_doc(lamina))
    overview = set(re.findall(r"\w+", text.partition("PACKAGE CONTENTS")[0]))
    assert set(lamina.__dict__["__all__"]) <= overview
