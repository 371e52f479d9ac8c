"""Models and outputs at URLs: s3://bucket/model.onnx, gs://, abfs://, https:// and all else that fsspec opens.

================  ==============================================================================
`locations`       what a URL is; its parts; its text without credentials
`stamps`          what distinguishes one content of a file or object from another
`filesystems`     the file system of fsspec for a URL: the only module that imports fsspec
`faults`          errors of stores: which pass, which are tried again, the coded error of each
`stores`          size and tag, listings, ranges, writing and deleting
`scratch`         room on the local disk for models that are at URLs, bounded by --scratch
`staging`         a model and the external data that it reads, brought to the local disk
`uploading`       the .xml and .bin, put so that no .xml is ever without its .bin
================  ==============================================================================

`locations` and `stamps` import nothing but the standard library. The others are imported only for a URL.
"""
