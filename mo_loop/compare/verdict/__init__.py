"""Whether two arrays agree, and the explanation of a difference."""
