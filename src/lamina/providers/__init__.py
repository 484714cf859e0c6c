"""Per vendor a pure `encode` and `decode`. No SDK is imported here."""
