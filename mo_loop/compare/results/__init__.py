"""What a comparison found: how two arrays compare, the rows of outputs, the report and its formats."""
