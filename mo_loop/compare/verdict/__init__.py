"""Whether two arrays agree, and what explains a difference."""
