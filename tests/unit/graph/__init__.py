"""The kernel: graphs, types, text, files of IR, workers."""
