"""The forms of IR in which control flow gives the right numbers on OpenVINO's CPU device, by hand, without passes.

Each test writes one form as graph text, emits it, reads it back and runs it with several inputs in changing order on
one compiled model against numpy. A pass may rely on what stands here; a runtime that breaks a form is seen here first.
"""
