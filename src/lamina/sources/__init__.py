"""What applies to a question.

Attachments, hooks, rules, references, tools and memory, through ports.
"""
