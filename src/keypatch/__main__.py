"""`python -m keypatch` is the command `keypatch`."""

from keypatch.cli.main import main

if __name__ == "__main__":
    main()
