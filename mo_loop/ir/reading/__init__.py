"""From the records of an IR file to a Graph; `mo_loop.ir.reader` makes the records."""
