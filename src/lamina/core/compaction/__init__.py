"""When and where history is cut, and the summary of the part that goes; never a model call.

Private: see `lamina` for what is public.
"""
