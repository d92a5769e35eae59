"""`python -m texplainer` is the command line."""

from texplainer.cli import main

if __name__ == "__main__":
    main()
