"""Memory cgroups: how many the kernel tracks, which were removed and are still held, and by what.

A removed memory cgroup stays in the kernel ("dying") as long as anything is
charged to it: a page of a tmpfs file, of the page cache, in swap. It has no
directory any more, but everything that walks the tree still visits it.
"""
