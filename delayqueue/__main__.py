"""`python -m delayqueue`."""

import sys

from delayqueue.cli import main

sys.exit(main())
