"""How tools/bench_inference.py measures a folder of networks of real size: IR of mo_loop and of ovc.

`pairs` measures one network, with `processes` for what needs a process of its own. `targets` compares the rows with
the targets and prints them. `nodes` shows what the runtime makes of both IRs.
"""
