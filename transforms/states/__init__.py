"""States for the next inference: variables (ReadValue-6, Assign-6) instead of tensors that a caller carries."""
