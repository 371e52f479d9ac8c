"""The forms of IR in which OpenVINO's CPU device computes control flow correctly, written by hand, without passes.

Each test writes one form as graph text, emits it, reads it back, runs it with several inputs in changing order on one
compiled model, and compares with numpy. Passes may rely on these forms; a runtime that breaks a form fails here.
"""
