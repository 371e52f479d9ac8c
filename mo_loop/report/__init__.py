"""Reports on a conversion: times (record), operations and weights (statistics), tensors in the IR (tensor_map)."""
