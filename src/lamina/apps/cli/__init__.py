"""The command line: `lamina --help`.

Private: see `lamina` for what is public.
"""


def main() -> None:
    """Entry point. The terminal libraries are imported only here."""
    from lamina.apps.cli.app import run

    run()
