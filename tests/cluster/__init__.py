"""Models and outputs at URLs, with a real S3 server on this machine; `make test-cluster` runs them."""
