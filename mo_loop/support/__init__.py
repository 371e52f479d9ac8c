"""Support code without knowledge of models: files, locks, text, tables, memory, worker processes."""
