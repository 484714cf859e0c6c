"""`lamina demo`: the same questions assembled in three ways, and what each of them costs."""
