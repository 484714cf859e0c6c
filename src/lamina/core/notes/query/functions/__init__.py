"""The functions of queries, by family; `FUNCTIONS` in `functions.table` has all of them."""
