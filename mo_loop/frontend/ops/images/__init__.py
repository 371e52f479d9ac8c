"""Windows, images and regions: convolution, pooling, resizing, sampling, detection."""
