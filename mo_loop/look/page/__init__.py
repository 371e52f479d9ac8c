"""The page: one self-contained HTML file that shows a graph, what each pass did to it, or two models side by side.

==================  ================================================================
`node_records`      nodes and scopes of a Graph as plain data, with ids of their own
`constant_records`  previews of constants, and names by which equal contents are found
`trip_counts`       what decides how often a loop runs
`of_structure`      records of an ONNX model, an IR or a file of a dump
`of_comparison`     the document of two models
`document`          states, steps and what changed between them: the data of the page
`html`              the page around a document
==================  ================================================================

The program of the page is written in TypeScript (tools/page) and stands built in `static`.
"""
