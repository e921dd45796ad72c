"""Try each source for real, and report what this process may see of the node and why not more.

`probe` does the IO: it opens real perf events, reads the real files. `verdict`
is pure: it turns what the attempts answered and the privileges we hold into
works, degraded, denied or absent, the reason, and what allows it.
"""

from nodescope.sources.access.probe import check_access
from nodescope.sources.access.verdict import Access, State

__all__ = ["Access", "State", "check_access"]
