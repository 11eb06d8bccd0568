"""A child whose standard output is not what was agreed."""

import sys

sys.stdout.write(sys.argv[1])
sys.exit(int(sys.argv[2]))
