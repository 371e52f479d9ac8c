"""`python -m mo_loop` is the command line."""

from mo_loop.cli import main

main(prog_name="mo-loop")
