"""The same value gives the same bytes in every process and for every hash seed."""

import hashlib
import json
import os
import subprocess
import sys
from functools import lru_cache
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from inline_snapshot import snapshot
from tests.strategies import json_values, texts, thorough

from lamina.core.codec import (
    canonical_bytes,
    digest_bytes,
    digest_texts,
    digest_value,
    mend_text,
    require_text,
)
from lamina.core.values.item import Item, note_id
from lamina.core.values.message import Message, Text, ToolDefinition
from lamina.errors import InvalidText

SOURCE = Path(__file__).parents[3] / "src"

# Sets feed the dicts and lists below, so another hash seed means another order of insertion.
PROGRAM = """
import json
from lamina.core.codec import canonical_bytes, digest_value
from lamina.core.layers import Assembler, Layout, measure_layers
from lamina.core.values.collections import Chain
from lamina.core.values.envelope import Envelope, LaidItem, SystemPart
from lamina.core.values.item import Item, note_id
from lamina.core.values.message import (
    Context, Message, Text, ToolCall, ToolDefinition, ToolResult, Use
)

names = {"path", "query", "limit", "filter", "é", "order"}
nested = {name: {"type": "string", "enum": sorted(names), **{n: n for n in names}}
          for name in names}
tools = tuple(
    ToolDefinition(name=name, description="d", parameters={key: nested for key in names})
    for name in ("alpha", "beta")
)
known = {(i.id, i.version): i for i in
         (Item(id=note_id(f"{name}.md"), content=name * 3) for name in names)}
library = tuple(LaidItem(item=i, version=v) for i, v in sorted(known)[:2])
item, version = sorted(known)[2]
messages = (
    Message(role="user", id="m1", blocks=(
        Context(uses=(Use(item=item, version=version, form="full"),)), Text("Q"))),
    Message(role="assistant", id="m2", blocks=(ToolCall(id="c", name="alpha", arguments="{}"),)),
    Message(role="tool", id="m3", blocks=(ToolResult(call_id="c", name="alpha", text="r"),)),
)
envelope = Envelope(system=(SystemPart(name="persona", text="S"),), library=library, tools=tools,
                    cached=Chain(messages))
lines = []
for promotion in ("lazy", "eager"):
    prompt = Assembler(len, Layout(promotion=promotion)).assemble(envelope, known, 0)
    lines += [segment.digest for segment in prompt]
    lines += [layer.digest for layer in measure_layers(prompt)]
    lines += [json.dumps(segment.content.parameters) for segment in prompt
              if isinstance(segment.content, ToolDefinition)]
lines += [canonical_bytes(each).decode() for each in (*tools, *messages)]
lines += [digest_value(nested)]
print(json.dumps(lines))
"""


@lru_cache
def _run(seed: str) -> list[str]:
    environment = {**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": str(SOURCE)}
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM], env=environment, capture_output=True, text=True, check=True
    )
    lines: list[str] = json.loads(done.stdout)
    return lines


def _without_schemas(lines: list[str]) -> list[str]:
    return [line for line in lines if not line.startswith('{"')] + [
        line for line in lines if line.startswith('{"') and '"name"' in line
    ]


@pytest.mark.parametrize("seed", ["1", "2", "random"])
def test_a_prompt_has_the_same_digests_and_bytes_under_every_hash_seed(seed: str) -> None:
    assert _without_schemas(_run(seed)) == _without_schemas(_run("0"))


@pytest.mark.parametrize("seed", ["1", "2", "random"])
def test_tool_schemas_go_to_the_wire_in_one_order_under_every_hash_seed(seed: str) -> None:
    """A digest that agrees while the dict behind it is ordered otherwise would be a lie."""
    assert _run(seed) == _run("0")


def test_canonical_bytes_have_sorted_keys_no_white_space_and_plain_utf8() -> None:
    tool = ToolDefinition(
        name="find", parameters={"type": "object", "properties": {"b": 1.5, "a": ["é", None]}}
    )
    assert canonical_bytes(tool) == snapshot(
        b'{"name":"find","parameters":{"properties":{"a":["\xc3\xa9",null],"b":1.5},'
        b'"type":"object"}}'
    )


def test_a_message_is_written_by_its_words() -> None:
    message = Message(role="user", blocks=(Text('say "hi"\n\u2028'),), id="m1")
    assert canonical_bytes(message) == snapshot(
        b'{"blocks":[{"text":"say \\"hi\\"\\n\xe2\x80\xa8","type":"text"}],"id":"m1","role":"user"}'
    )


def _reversed(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _reversed(each) for key, each in reversed(value.items())}
    if isinstance(value, list):
        return [_reversed(each) for each in value]
    return value


@thorough
@given(st.dictionaries(texts, json_values, max_size=4))
def test_the_order_of_keys_does_not_matter_at_any_depth(schema: dict[str, Any]) -> None:
    forward = ToolDefinition(name="t", parameters=schema)
    backward = ToolDefinition(name="t", parameters=_reversed(schema))
    assert canonical_bytes(forward) == canonical_bytes(backward)
    assert digest_value(forward) == digest_value(backward)
    assert json.loads(canonical_bytes(schema)) == schema


def test_digests_are_plain_sha256() -> None:
    assert digest_bytes(b"x") == hashlib.sha256(b"x").hexdigest()
    assert digest_value({"a": 1}) == hashlib.sha256(b'{"a":1}').hexdigest()


@thorough
@given(st.lists(texts, max_size=4), st.lists(texts, max_size=4))
def test_a_digest_over_several_texts_keeps_their_borders(left: list[str], right: list[str]) -> None:
    assert (digest_texts(left) == digest_texts(right)) == (left == right)
    assert digest_texts(["ab", "c"]) != digest_texts(["a", "bc"])


# -- text that cannot be carried -----------------------------------------------------------------

surrogates = st.characters(min_codepoint=0xD800, max_codepoint=0xDFFF)


@thorough
@given(texts, surrogates, texts)
def test_a_lone_surrogate_is_refused_with_its_place(before: str, lone: str, after: str) -> None:
    broken = before + lone + after
    for holder in (
        broken,
        {broken: 1},
        ["ok", broken],
        Text(broken),
        Message(role="user", blocks=(Text(broken),)),
        Item(id=note_id("a.md"), content=broken),
        ToolDefinition(name="t", parameters={"deep": [{"er": broken}]}),
    ):
        with pytest.raises(InvalidText) as caught:
            canonical_bytes(holder)
        assert caught.value.code == "invalid_text"
        assert caught.value.position == len(before)
    with pytest.raises(InvalidText, match="the message contains a lone surrogate") as refused:
        require_text(broken, "the message")
    assert refused.value.position == len(before)


@thorough
@given(texts)
def test_text_that_can_be_sent_passes_unchanged(text: str) -> None:
    assert require_text(text, "it") == text
    assert mend_text(text) == text


@thorough
@given(texts, surrogates, texts)
def test_mending_loses_nothing_but_the_surrogate(before: str, lone: str, after: str) -> None:
    mended = mend_text(before + lone + after)
    assert mended.startswith(before)
    assert mended.endswith(after)
    assert canonical_bytes(mended)
