"""`python -m mo_loop` is the command line."""

from mo_loop.cli import main

if __name__ == "__main__":
    main(prog_name="mo-loop")
