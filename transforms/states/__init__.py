"""States that keep their values from one inference to the next: variables (ReadValue-6, Assign-6) in place of what a caller carries."""
