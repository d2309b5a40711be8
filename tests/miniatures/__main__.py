"""``python -m tests.miniatures FOLDER`` writes all miniatures there."""

import sys
from pathlib import Path

from tests.miniatures import write_all

write_all(Path(sys.argv[1]))
