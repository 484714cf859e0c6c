"""The embedded model as a model that was trained on tools would be: with a template for them.

Its weights are those of the small model, so it calls little by itself; but what stands in front of
what, and what its cache holds, is decided by the template, as with a model of a gigabyte.
"""

from pathlib import Path

from tests.adapters.providers.local.test_gguf import STRING, text

KEY = "tokenizer.chat_template"
# Tools behind the first system message, calls and results in tags: as the large families have it.
TEMPLATE = """\
{%- if tools %}
    {{- '<|im_start|>system\\n' + messages[0].content + '\\n\\n# Tools\\n\\n<tools>' }}
    {%- for tool in tools %}{{- '\\n' }}{{- tool | tojson }}{%- endfor %}
    {{- '\\n</tools>\\n\\nTo call one, write <tool_call>\\n{"name": <name>, ' }}
    {{- '"arguments": <object>}\\n</tool_call><|im_end|>\\n' }}
{%- endif %}
{%- for message in messages %}
    {%- if message.role == 'tool' %}
        {{- '<|im_start|>user\\n<tool_response>\\n' + message.content + '\\n</tool_response>' }}
        {{- '<|im_end|>\\n' }}
    {%- elif not (tools and loop.first) %}
        {{- '<|im_start|>' + message.role + '\\n' }}
        {%- if message.content %}{{- message.content }}{%- endif %}
        {%- for call in message.tool_calls or [] %}
            {{- '<tool_call>\\n{"name": "' + call.function.name + '", "arguments": ' }}
            {{- call.function.arguments | tojson }}
            {{- '}\\n</tool_call>' }}
        {%- endfor %}
        {{- '<|im_end|>\\n' }}
    {%- endif %}
{%- endfor %}
{%- if add_generation_prompt %}{{- '<|im_start|>assistant\\n' }}{%- endif %}
"""
# What the weights behind the header are aligned to.
ALIGNMENT = 32


def write_with_template(model: Path, copy: Path) -> Path:
    """A copy of a model's file with `TEMPLATE` for its own."""
    content = model.read_bytes()
    head = text(KEY) + STRING.to_bytes(4, "little")
    start = content.index(head) + len(head)
    length = int.from_bytes(content[start : start + 8], "little")
    padding = (length - len(TEMPLATE.encode())) % ALIGNMENT
    template = text(TEMPLATE + " " * padding)
    with copy.open("wb") as file:
        for part in (content[:start], template, content[start + 8 + length :]):
            file.write(part)
    return copy
