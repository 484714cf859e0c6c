"""The file tools: reading, searching, editing, the trash and undo, all through `Root`."""
