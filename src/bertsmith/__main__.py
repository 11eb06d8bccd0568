"""`python -m bertsmith`: the command line without the installed script."""

from bertsmith.cli.app import main

if __name__ == "__main__":
    main()
