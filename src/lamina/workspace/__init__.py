"""Where attached things are read from."""
