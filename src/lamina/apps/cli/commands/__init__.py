"""What the command line offers: each command with its options, by family."""
