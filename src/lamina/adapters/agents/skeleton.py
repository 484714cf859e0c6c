"""A new agent to start from: files that say what they are for.

Law: nothing is overwritten.
"""

import json
import os
from pathlib import Path

from lamina.errors import UsageError

_AGENT = """\
# An agent: who answers, by which rules, with which tools.
name: {name}
description: What this agent is for, in a sentence.
version: "0.1"

# Who answers, as provider:id; without it, whoever a session is opened with.
# model: anthropic:claude-opus-5

# Settings and options of its sessions; each can be changed in a session.
settings:
  # temperature: 0.5
  # max_tokens: 2000
  # Whether a person is asked before a tool runs: always, never, or as each tool says.
  ask_before_tools: tool

# How rules and references with `include: agent` are chosen for a question:
# conservative, normal or aggressive, or one by one.
search: normal
# search:
#   preset: normal
#   top_n: 5
#   include_score: 0.7

# The same for tools, and how the list of tools changes: sticky (tools join when they are chosen,
# and stay), exact (just those chosen), or all.
tool_search: normal
tool_policy: sticky

# What comes along with what was chosen.
# relations:
#   tool:files/read_file: [tool:files/write_file]
"""
_PERSONA = """\
You are {name}. Say here who that is, what it is good at, and how it speaks.
"""
_RULE = """\
---
description: How answers are written.
# Rules with lower numbers come first: 0 to 999.
priority: 500
# always: part of every request. agent: when a question calls for it. manual: when it is added.
include: always
# With patterns it joins when a file that fits is attached.
# globs: ["**/*.py"]
---
Say what you are sure of, and what you are not.
"""
_REFERENCE = """\
---
description: Words that mean something particular here, with what they mean.
include: agent
---
# Glossary

- **Lamina**: one thin layer.
"""
_MEMORY = ""


def write_skeleton(name: str, parent: str | os.PathLike[str]) -> Path:
    """Writes the folder of a new agent, and returns it.

    Raises:
        UsageError: the name is not valid, something is there already, or nothing can be written
            there.
    """
    if not name or name in (".", "..") or name != Path(name).name or "\\" in name or "\0" in name:
        raise UsageError(f"{name!r} cannot be the name of a folder; use letters, digits and dashes")
    folder = Path(parent) / name
    files = {
        # JSON is YAML: quotes only if the name needs them.
        "agent.yaml": _AGENT.format(name=_quote(name)),
        "persona.md": _PERSONA.format(name=name),
        "rules/style.md": _RULE,
        "references/glossary.md": _REFERENCE,
        "memory.md": _MEMORY,
        "mcp.json": '{\n  "mcpServers": {}\n}\n',
    }
    try:
        folder.mkdir(parents=True)
    except FileExistsError:
        raise UsageError(f"{str(folder)!r} is there already, and nothing was written") from None
    except OSError as error:
        problem = f"{str(folder)!r} cannot be made: {error.strerror or error}"
        raise UsageError(f"{problem}; --in FOLDER puts it elsewhere") from error
    for path, text in files.items():
        (folder / path).parent.mkdir(exist_ok=True)
        with (folder / path).open("x", encoding="utf-8", newline="\n") as file:
            file.write(text)
    return folder


def _quote(name: str) -> str:
    plain = name.replace("-", "").replace("_", "")
    is_plain = plain.isascii() and plain.isalnum() and not plain.isdigit() and name[0].isalpha()
    is_reserved = name.lower() in ("y", "n", "yes", "no", "on", "off", "true", "false", "null")
    return name if is_plain and not is_reserved else json.dumps(name, ensure_ascii=False)
