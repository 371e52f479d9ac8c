"""Reports on a conversion: its times, operations, weights, and the places of tensors in the IR (record); its options
and the sizes of inputs that may change (conversion_info)."""
