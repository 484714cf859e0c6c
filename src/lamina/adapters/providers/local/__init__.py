"""Models that run on this machine: where they are, how they get there, how they count."""
