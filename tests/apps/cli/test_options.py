"""The options of the commands that talk to a model: names, defaults and limits, as they are
documented. Their order and their help may change."""

import pytest
import typer

from lamina.apps.cli.app import load_command
from lamina.apps.cli.flags import PromptFlags, SessionFlags, expand_flags

SESSION = {
    "--agent -A = None",
    "--allow-host = None, often",
    "--attach -a = None, often",
    "--essential = None, often",
    "--files = False",
    "--hooks = None, often",
    "--in = None, often",
    "--mode = agent",
    "--model --target -m -t = None",
    "--project = None",
    "--since = None",
    "--system = ",
    "--trust = False",
    "--until = None",
    "--web = None",
    "--web-search = None",
    "--max-tokens = None, from 1",
    "--mcp = None, exists",
    "--new = False",
    "--no-memory = False",
    "--session -s = None",
    "--spend-day = None, from 0",
    "--spend-session = None, from 0",
    "--spend-turn = None, from 0",
    "--workspace -w = ., exists",
}
OPTIONS = {
    "chat": SESSION
    | {"--active = None", "--continue -c = False", "--window = None, from 1", "--yes -y = False"},
    "ask": SESSION
    | {
        "--active = None",
        "--allow-tools = False",
        "--yes -y = False",
        "--edit = None",
        "--json = False",
        "--regenerate = None",
        "--resume = False",
        "question = None",
    },
    "rpc": SESSION | {"--allow-tools = False"},
    "context": SESSION
    | {
        "--active = None",
        "--attachment-limit = None",
        "--full --no-full = False",
        "--json = False",
        "--no-wire --wire = False",
        "--promotion = None",
        "--script = None",
        "--window = None",
        "question = None",
    },
}


@pytest.mark.parametrize("command", OPTIONS)
def test_a_command_takes_the_options_that_are_documented(command: str) -> None:
    found = load_command(command).params
    assert {_describe(parameter) for parameter in found} == OPTIONS[command]


def _describe(parameter: typer.core.TyperOption) -> str:
    names = " ".join(sorted([*parameter.opts, *parameter.secondary_opts]))
    limits = [
        ", required" * parameter.required,
        ", often" * parameter.multiple,
        ", exists" * parameter.type_descriptor.parameter_info.exists,
        f", from {parameter.min}" if parameter.min is not None else "",
    ]
    return f"{names} = {parameter.default}{''.join(limits)}"


def test_a_command_is_called_with_its_groups() -> None:
    @expand_flags
    def command(top: int, *, prompt: PromptFlags) -> tuple[int, PromptFlags]:
        return top, prompt

    expected = PromptFlags(attach=["a.md"])
    assert command(top=3, attach=["a.md"], essential=None) == (3, expected)


def test_a_flag_stands_in_one_group_of_a_command() -> None:
    def command(*, opening: SessionFlags, agent: str) -> None: ...

    with pytest.raises(TypeError, match="command has the flag 'agent' twice"):
        expand_flags(command)
