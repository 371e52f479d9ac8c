"""What has no knowledge of models: files, locks, text, tables, memory, worker processes."""
