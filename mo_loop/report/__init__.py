"""Reports on a conversion: times, control flow, operations and weights (record), tensors in the IR (tensor_map), its
options and the sizes of inputs that may change (conversion_info)."""
