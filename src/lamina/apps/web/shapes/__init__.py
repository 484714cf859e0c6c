"""What routes take and give, as records: their names are the names of types in other languages."""
