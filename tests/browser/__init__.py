"""Tests of the page in a browser: `make test-browser`. `browsing` opens pages, `models` makes what they show."""
