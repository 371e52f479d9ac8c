"""Functions of single elements, and sums and gates that ONNX Runtime fuses with them."""
