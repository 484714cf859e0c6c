"""What axe finds wrong with a page for people who do not see it, or use no mouse."""

from functools import cache
from pathlib import Path

from playwright.sync_api import Page

SCRIPT = Path(__file__).parents[2] / "web" / "node_modules" / "axe-core" / "axe.min.js"
RUN = """
async () => {
  const report = await axe.run(document, {
    resultTypes: ['violations'],
    runOnly: ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa', 'best-practice'],
  });
  return report.violations.flatMap((rule) => rule.nodes.map((node) =>
    `${rule.id}: ${node.target.join(' ')}: ${node.failureSummary.replaceAll('\\n', ' ')}`));
}
"""


def violations(page: Page) -> list[str]:
    """A line for every element that breaks a rule."""
    # In the page by the debugger's door: the policy of the page does not concern it.
    page.evaluate(f"() => {{ if (!window.axe) {{ {_source()} }} }}")
    # A fade that has not ended is read as too little contrast.
    page.evaluate(
        "() => Promise.all(document.getAnimations()"
        ".filter((a) => a.effect?.getComputedTiming().iterations !== Infinity)"
        ".map((a) => a.finished.catch(() => {})))"
    )
    found: list[str] = page.evaluate(RUN)
    return found


def require_accessible(page: Page) -> None:
    lines = violations(page)
    assert not lines, f"{page.url}\n" + "\n".join(lines)


@cache
def _source() -> str:
    return SCRIPT.read_text("utf-8")
