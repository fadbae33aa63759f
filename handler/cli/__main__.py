"""`python -m handler.cli`, the same as `hayfork`."""

import sys

from handler.cli.entry import main

sys.exit(main())
