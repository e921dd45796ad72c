"""Lines of the kernel's log that say something went wrong, read into facts. Pure.

`message` is what a line becomes and how a rule reads one; `ena`, `network`,
`cores` and `memory` hold the rules, each format with the version that brought
it; `classify` picks the rule; `joining` adds what the next lines say.
"""

from nodescope.sources.kernel_log.messages.classify import classify
from nodescope.sources.kernel_log.messages.continuation import join
from nodescope.sources.kernel_log.messages.message import KernelMessage

__all__ = ["KernelMessage", "classify", "join"]
