"""Recurrent cells in the bodies of loops: expressions of columns, the cells they form, and their replacements."""
