"""Locates the folders for files that can be fetched again."""

import os
from pathlib import Path


def cache_folder() -> Path:
    """Return LAMINA_CACHE, or else the platform's cache folder."""
    if folder := os.environ.get("LAMINA_CACHE"):
        return Path(folder)
    from platformdirs import user_cache_path

    return user_cache_path("lamina", appauthor=False)


def models_folder() -> Path:
    return cache_folder() / "models"


def slots_folder() -> Path:
    """Return the folder for an embedded model's saved session states."""
    return cache_folder() / "slots"
