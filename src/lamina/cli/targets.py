"""`lamina targets`: the providers and models Lamina knows."""

from rich.console import Console
from rich.table import Table

from lamina.providers.model_book import load_book


def show_targets() -> None:
    book = load_book()
    table = Table(title=f"Known targets, as of {book.date}; vendors take any model name", box=None)
    for heading in ("target", "window", "counts", "cached from", "steps", "lifetime",
                    "read", "write"):  # fmt: skip
        table.add_column(heading, justify="left" if heading == "target" else "right", no_wrap=True)
    for name in book.names():
        target = book.find(name)
        cache = target.cache
        lifetime = "process" if cache.lifetime_s is None else f"{cache.lifetime_s / 60:g} min"
        table.add_row(
            name,
            f"{target.window:,}",
            "exact" if target.exact_tokens else "estimate",
            f"{cache.minimum:,}",
            str(cache.step),
            lifetime,
            f"x{cache.read_price:g}",
            f"x{cache.write_price:g}",
        )
    Console().print(table)
