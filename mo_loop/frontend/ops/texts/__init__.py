"""Operators on texts, by operations of the package openvino_tokenizers."""
