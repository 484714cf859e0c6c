"""The view of a request context as the original documents have it: behaviour 42. Every face draws
these rows."""

from collections.abc import Sequence

from msgspec.structs import replace
from tests.engine.runners.scenes import Scene
from tests.fakes.index import IndexFake
from tests.fakes.selection import GuideSourceFake, guide
from tests.fakes.sessions import run
from tests.fakes.tools import tool

from lamina.apps.views.why import Explanation, Reason, explain_question

GUIDES = (
    guide("rule", "Authentication Rules", level=1, description="How people log in"),
    guide("rule", "Tone", "manual", level=1),
    guide("rule", "Billing", "agent", level=900),
    guide("reference", "Endpoints", "agent", level=20),
)
ALIKE = {"bill": {"rule:Billing": 0.874, "reference:Endpoints": 0.91}}


def shown(rows: Sequence[Reason]) -> list[str]:
    return [f"{row.place} {row.name} [{row.badge}]" for row in rows]


async def explained(played: Scene) -> Explanation:
    return explain_question(await played.store.read("talk"), None, played.book)


def test_42_three_columns_show_priority_name_and_badge_in_their_order() -> None:
    async def body() -> None:
        files = replace(tool("read_file"), include="manual")
        tools = [tool("write_file"), files]
        scene = Scene(guides=GuideSourceFake(*GUIDES), index=IndexFake(ALIKE), tools=tools)
        async with scene as played:
            await played.runner.session.add("rule:Tone")
            await played.runner.session.add("tool:fake/read_file")
            answer = await played.ask("Who gets the bill?")
            assert answer.turn is not None
            view = await explained(played)
            assert shown(view.rules) == [
                "001 • Authentication Rules [Always]",
                "001 • Tone [Manual]",
                "900 • Billing [Agent - 0.87]",
            ]
            assert shown(view.references) == ["020 • Endpoints [Agent - 0.91]"]
            own = ("use_tool", "read_result")
            rows = [row for row in shown(view.tools) if not any(name in row for name in own)]
            assert rows == [
                "fake. • read_file [Manual]",
                "fake. • write_file [Always]",
            ]
            # What each is for stands below it, and as a tooltip where there are such.
            assert view.rules[0].about == "How people log in"
            assert view.tools[-1].about == "Does write_file."

    run(body())


def test_42_a_request_without_any_of_them_shows_empty_columns_and_what_was_left_out() -> None:
    async def body() -> None:
        far = Scene(
            guides=GuideSourceFake(GUIDES[2]), index=IndexFake({"x": {"rule:Billing": 0.1}})
        )
        async with far as played:
            await played.ask("x")
            view = await explained(played)
            assert (view.rules, view.references) == ((), ())

    run(body())
