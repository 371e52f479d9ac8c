"""The page: one self-contained HTML file that shows a graph, the changes of each pass, or two models side by side.

`document` has its data, states, steps and what changed between them, and the page around it; mo_loop/look/viewing.py
makes the documents of one and of two models. The program of the page is written in TypeScript (tools/page); `static`
has the built files.
"""
