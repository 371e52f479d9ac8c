"""Runs models on OpenVINO, of this or another release, in processes that may crash or hang."""
