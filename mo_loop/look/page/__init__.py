"""The page: one self-contained HTML file that shows a graph, the changes of each pass, or two models side by side.

===============  ================================================================
`document`       states, steps and what changed between them: the data of the page
`of_comparison`  the document of two models
`of_layer_map`   the document of an ONNX model and its IR
`html`           the page around a document
===============  ================================================================

The program of the page is written in TypeScript (tools/page); `static` has the built files.
"""
