"""The file of MCP servers: one bad entry costs one server, and secrets are not shown."""

import json
from pathlib import Path
from typing import Any

import pytest

from lamina.adapters.tools.mcp_client.config import (
    ServerConfig,
    ServerToolConfig,
    parse_servers,
    read_servers,
    servers_from,
)
from lamina.errors import UsageError

HERE = Path("/home/ada/mcp.json")


def entry(raw: Any, **environ: str) -> ServerConfig:
    config = parse_servers(json.dumps({"mcpServers": {"s": raw}}).encode(), HERE, environ)
    assert config.problems == ()
    return config.servers[0]


def problem(raw: Any, **environ: str) -> str:
    config = parse_servers(json.dumps({"mcpServers": {"s": raw}}).encode(), HERE, environ)
    assert config.servers == ()
    (held,) = config.problems
    assert (held.what, held.reason) == ("s", "invalid")
    assert "'/home/ada/mcp.json'" in held.detail
    return held.detail


def test_a_command_is_read_with_all_that_goes_with_it() -> None:
    tools = {"rm": {"disabled": True, "autoApprove": 1}, "ls": {"permission": "free"}}
    read = entry(
        {
            "command": "npx",
            "args": ["-y", "${PACKAGE}", "$HOME"],
            "env": {"TOKEN": "${env:TOKEN}", "MODE": "${MODE:-fast}"},
            "cwd": "work",
            "timeout": 5,
            "tools": tools,
            "alwaysAllow": ["another program's"],
        },
        PACKAGE="server",
        TOKEN="t0p",
    )
    assert read.args == ("-y", "server", "$HOME")
    assert read.env == {"TOKEN": "t0p", "MODE": "fast"}
    assert read.cwd == "/home/ada/work"
    assert read.timeout == 5.0
    assert read.tools == {
        "rm": ServerToolConfig(disabled=True),
        "ls": ServerToolConfig(permission="free"),
    }
    assert (read.permission_of("ls"), read.permission_of("rm")) == ("free", "required")
    assert "t0p" not in repr(read)


def test_an_address_is_read_with_its_headers() -> None:
    headers = {"Authorization": "Bearer ${KEY}"}
    raw = {"type": "http", "url": "https://${HOST}/mcp", "headers": headers}
    read = entry(raw, KEY="k", HOST="example.org")
    assert (read.url, read.headers) == ("https://example.org/mcp", {"Authorization": "Bearer k"})


@pytest.mark.parametrize(
    ("raw", "message"),
    [
        ({}, "the entry has neither 'command' nor 'url'"),
        ({"command": "a", "url": "http://b"}, "the entry has both a 'command' and a 'url'"),
        (
            {"command": 5},
            "not of the right form: Expected `str | null`, got `int` - at `$.command`",
        ),
        ([], "not of the right form: Expected `object`, got `array`"),
        ({"command": "a", "args": "-y"}, "Expected `array`, got `str` - at `$.args`"),
        ({"command": "a", "timeout": 0}, "'timeout' is a number of seconds above 0, not 0.0"),
        (
            {"command": "a", "permission": "always"},
            "Invalid enum value 'always' - at `$.permission`",
        ),
        ({"url": "http://a/x", "type": "ws"}, "only streamable HTTP and SSE are spoken here"),
        (
            {"command": "a", "env": {"K": "${MISSING}"}},
            "the variable MISSING that 'env.K' asks for",
        ),
        ({"command": "${input:key}"}, "${input:key} in 'command' is nothing that Lamina knows"),
    ],
)
def test_an_entry_that_cannot_be_used_says_why(raw: Any, message: str) -> None:
    assert message in problem(raw)


def test_a_bad_entry_costs_no_other_server_and_a_disabled_one_is_not_read() -> None:
    raw = {"a": {"command": "x"}, "b": {}, "c": {"disabled": True, "command": "${NO}"}, "": {}}
    config = parse_servers(json.dumps({"mcpServers": raw}).encode(), HERE, {})
    assert [server.name for server in config.servers] == ["a"]
    assert [problem.what for problem in config.problems] == ["b", "a server without a name"]


def test_the_form_of_vs_code_and_a_mark_in_front_are_read() -> None:
    data = b"\xef\xbb\xbf" + json.dumps({"servers": {"a": {"command": "x"}}, "inputs": []}).encode()
    assert [server.name for server in parse_servers(data, HERE, {}).servers] == ["a"]


@pytest.mark.parametrize(
    ("data", "problem"),
    [
        (
            b'{\n  "mcpServers": {,}\n}',
            r"'/home/ada/mcp.json' is not JSON: .* at line 2, column 18",
        ),
        (b"", "is not JSON"),
        (b"\xff", "is not JSON"),
        (b"[]", "names no MCP servers"),
        (b"{}", "names no MCP servers"),
        (b'{"mcpServers": []}', "names no MCP servers"),
    ],
)
def test_a_file_that_is_none_says_where_and_what_to_do(data: bytes, problem: str) -> None:
    with pytest.raises(UsageError, match=problem):
        parse_servers(data, HERE, {})


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"nope.json' cannot be read: No such file"):
        read_servers(tmp_path / "nope.json")
    (tmp_path / "mcp.json").write_text('{"mcpServers": {"a": {"command": "${WHAT}"}}}')
    assert read_servers(tmp_path / "mcp.json", {"WHAT": "ls"}).servers[0].command == "ls"


def test_a_tool_is_included_as_it_says_then_as_its_server_says_then_always() -> None:
    tools = {"a": {"include": "manual"}, "b": {"permission": "free"}}
    read = entry({"command": "x", "include": "agent", "tools": tools})
    assert [read.include_of(name) for name in "abc"] == ["manual", "agent", "agent"]
    assert [read.permission_of(name) for name in "abc"] == ["required", "free", "required"]
    plain = entry({"command": "x", "tools": {"a": {"include": "agent"}}})
    assert [plain.include_of(name) for name in "ab"] == ["agent", "always"]


def test_terms_in_the_words_of_teamspark_are_read() -> None:
    read = entry(
        {
            "type": "stdio",
            "command": "x",
            "serverToolDefaults": {"permissionRequired": False, "include": "manual"},
            "tools": {"a": {"permissionRequired": True, "include": "agent"}, "b": {}},
        }
    )
    assert (read.permission, read.include) == ("free", "manual")
    assert [read.permission_of(name) for name in "abc"] == ["required", "free", "free"]
    assert [read.include_of(name) for name in "abc"] == ["agent", "manual", "manual"]
    # What is said in our own words counts.
    both = {"permissionRequired": False}
    assert entry(
        {"command": "x", "permission": "required", "serverToolDefaults": both}
    ).permission == ("required")
    assert "'sometimes' - at `$.include`" in problem(
        {"command": "x", "serverToolDefaults": {"include": "sometimes"}}
    )
    assert "Invalid enum value 'no'" in problem(
        {"command": "x", "tools": {"t": {"permissionRequired": "no"}}}
    )


def test_servers_of_an_object_are_read_as_those_of_a_file() -> None:
    raw = {"a": {"command": "${WHAT}", "cwd": "work"}, "b": {}}
    config = servers_from(raw, "/home/ada/agent.yaml", {"WHAT": "ls"})
    (server,) = config.servers
    assert (server.name, server.command, server.cwd) == ("a", "ls", "/home/ada/work")
    assert [problem.what for problem in config.problems] == ["b"]
    assert "'/home/ada/agent.yaml'" in config.problems[0].detail
