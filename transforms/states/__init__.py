"""States for the next inference: variables (ReadValue-6, Assign-6) in place of what a caller carries."""
