"""Reports on a conversion: times (record), operations and weights (statistics), tensors in the IR (tensor_map),
sizes of inputs that may change (size_texts)."""
