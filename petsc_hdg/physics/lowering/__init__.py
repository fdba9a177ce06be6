"""From the syntax tree to checked functions: names, types, declarations, statements, calls."""
