"""The last lines of an answer, which are drawn anew while it comes.

Laws: only lines that changed are written, in one write, so nothing flickers. What has scrolled off
the screen is final: nothing can move it any more.
"""

from collections.abc import Sequence

from lamina.apps.cli.screen import Screen, ScreenLine

ERASE_LINE, ERASE_BELOW = "\r\x1b[2K", "\x1b[J"


class Tail:
    def __init__(self, screen: Screen) -> None:
        self._screen = screen
        self._lines: list[ScreenLine] = []
        # How many lines of the text under way have scrolled off.
        self._scrolled_lines = 0
        self._width = screen.width

    def draw(self, lines: Sequence[ScreenLine]) -> None:
        """Replaces what is drawn by `lines`."""
        if self._screen.width != self._width:
            # Other lines than those that scrolled off: better twice than not at all.
            self._width = self._screen.width
            self._scrolled_lines = 0
        new = list(lines[self._scrolled_lines :])
        old = self._lines
        same = 0
        while same < min(len(old), len(new)) and old[same] == new[same]:
            same += 1
        if same == len(old) == len(new):
            return
        up = sum(map(self._rows, old[same:]))
        parts = [f"\x1b[{up}A"] if up else []
        parts += [f"{ERASE_LINE}{line}\n" for line in new[same:]]
        if up > sum(map(self._rows, new[same:])):
            parts.append(ERASE_BELOW)
        self._screen.write("".join(parts))
        self._lines = new
        self._let_go()

    def finish(self, lines: Sequence[ScreenLine]) -> None:
        """Draws `lines` for good; what comes next stands below them."""
        self.draw(lines)
        self._lines = []
        self._scrolled_lines = 0

    def clear(self) -> None:
        """Takes away what is drawn; what scrolled off stays."""
        self.finish(())

    def _let_go(self) -> None:
        """Lines that do not fit the screen cannot be reached any more."""
        room = max(1, self._screen.height - 2)
        rows = 0
        for count, line in enumerate(reversed(self._lines)):
            rows += self._rows(line)
            if rows > room:
                self._scrolled_lines += len(self._lines) - count
                self._lines = self._lines[len(self._lines) - count :]
                return

    def _rows(self, line: ScreenLine) -> int:
        """How many rows a line takes now: the terminal may have become narrower since."""
        return max(1, -(-line.width // max(1, self._screen.width)))
