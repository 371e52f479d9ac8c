"""Reports on a conversion: times, control flow, operations and weights (record), tensors in the IR (tensor_map), its
options in the IR (conversion_info), sizes of inputs that may change (size_texts)."""
