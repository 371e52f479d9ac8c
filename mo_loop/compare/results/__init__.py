"""The results of a comparison: how two arrays compare, the rows of outputs, the report and its formats."""
