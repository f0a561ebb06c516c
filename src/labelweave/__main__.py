"""`python -m labelweave` is the command line."""

from labelweave.cli.main import main

if __name__ == "__main__":
    main(prog_name="labelweave")
