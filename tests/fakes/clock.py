"""A clock that the test moves."""


class FakeClock:
    def __init__(self, time: float = 1_794_000_000.0) -> None:
        self.time = time

    def now(self) -> float:
        return self.time

    def pass_by(self, seconds: float) -> None:
        self.time += seconds
