"""Models and outputs at URLs: s3://bucket/model.onnx, gs://, abfs://, https:// and all else that fsspec opens.

================  ==============================================================================
`locations`       what a URL is; its parts; its text without credentials; what distinguishes contents of a file
`filesystems`     the file system of fsspec for a URL: the only module that imports fsspec; the errors of stores
`stores`          size and tag, listings, ranges, writing and deleting
`scratch`         room on the local disk for models that are at URLs, bounded by --scratch
`transfers`       models brought to the local disk; the .xml and .bin put so that no .xml is without its .bin
================  ==============================================================================

`locations` imports nothing but the standard library. The others are imported only for a URL.
"""
