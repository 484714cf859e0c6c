"""What is wrong with the files of an agent, and how a session differs from them, in lines for a
request."""

from collections.abc import Sequence

from lamina.core.values.agent import AgentChange, Problem

# How many problems of an agent's files are named with a request.
PROBLEMS_SHOWN = 5


def name_errors(problems: Sequence[Problem]) -> list[str]:
    """What is wrong with an agent's files, as much as is worth a line each."""
    errors = [str(problem) for problem in problems if problem.level == "error"]
    return errors[:PROBLEMS_SHOWN]


def describe_problems(problems: Sequence[Problem]) -> list[str]:
    """What is wrong with an agent's files; what is only odd is counted."""
    errors = [problem for problem in problems if problem.level == "error"]
    lines = name_errors(problems)
    if rest := len(problems) - len(lines):
        one, many = ("problem", "problems") if len(errors) > len(lines) else ("oddity", "oddities")
        noun = many if rest > 1 else one
        lines.append(f"{rest} {noun} in the files of the agent; `lamina agent check` names them")
    return lines


def describe_changes(changes: Sequence[AgentChange]) -> list[str]:
    """How the files of an agent differ from what the session has of them, in one line."""
    if not changes:
        return []
    named = "; ".join(change.detail for change in changes[:PROBLEMS_SHOWN])
    more = f"; and {len(changes) - PROBLEMS_SHOWN} more" if len(changes) > PROBLEMS_SHOWN else ""
    return [
        f"{named}{more}. The session keeps what it has; `/items adopt`, `lamina sessions adopt` or "
        f"`session.adopt_agent()` takes the agent's files over"
    ]
