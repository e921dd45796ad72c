"""Lines of the kernel's log that say something went wrong, read into facts. Pure.

`message` is what a line becomes and how a rule reads one; `ena`, `network`, `cores`, `memory`,
`storage`, `kernel_faults`, `limits`, `gpu` and `hardware` hold the rules, each format with the
version that brought it; `classify` picks the rule; `continuation` adds what other lines say.
"""

from nodescope.sources.kernel_log.messages.classify import classify
from nodescope.sources.kernel_log.messages.continuation import complete, join
from nodescope.sources.kernel_log.messages.message import KernelMessage

__all__ = ["KernelMessage", "classify", "complete", "join"]
