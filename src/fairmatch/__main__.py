"""Make ``python -m fairmatch`` the same as ``fairmatch``."""

import sys

from fairmatch.cli.main import main

if __name__ == "__main__":
    sys.exit(main())
