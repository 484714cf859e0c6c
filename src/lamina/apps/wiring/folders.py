"""Where on this machine things are kept."""

import os
from pathlib import Path


def data_folder() -> Path:
    """Where sessions and what belongs to them are kept: LAMINA_DATA, or where the platform wants
    such things."""
    if folder := os.environ.get("LAMINA_DATA"):
        return Path(folder)
    from platformdirs import user_data_path

    return user_data_path("lamina", appauthor=False)
