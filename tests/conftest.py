"""Property tests draw anew on every run by hand; in CI they draw the same, so that a red run is
about the change and not about luck."""

import os

from hypothesis import settings

settings.register_profile("ci", derandomize=True)
if os.environ.get("CI"):
    settings.load_profile("ci")
