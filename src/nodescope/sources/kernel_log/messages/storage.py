"""Block devices and file systems: linux 3.10 to 6.18, block/, drivers/nvme, fs/.

The function that reports a failed request stood before it up to 5.x (`end_request:`, then
`blk_update_request:` or `print_req_error:`); its operation came with 5.1. A request that the
device does not support is no error: every `mkfs` makes some.
"""

from __future__ import annotations

from nodescope.sources.kernel_log.messages.message import MessageRule, rule

# Drives for media that may be absent: a virtual machine reads its empty ones at every boot.
_DISK = r"(?!fd\d|sr\d)(?P<device>[^\s,]{1,64})"

_REQUESTS = (
    rule(
        "disk_io_error",
        "error, dev ",
        r"(?:\A|: )(?P<error>(?!operation not supported)[A-Za-z][\w /-]{0,40}) error, "
        rf"dev {_DISK}, "
        r"sector (?P<sector>\d{1,18})(?: op 0x[0-9a-f]{1,8}:\((?P<operation>\w{1,32})\))?",
    ),
    rule(
        "disk_io_error",
        "Buffer I/O error on dev",
        rf"Buffer I/O error on dev(?:ice)? {_DISK}, logical block \d+"
        r"(?:, (?P<error>lost (?:async|sync) page write|async page read))?",
    ),
    rule(
        "disk_io_error",
        "rejecting I/O to ",
        r"(?P<device>\d+:\d+:\d+:\d+): (?:\[\w{1,32}\] )?(?P<error>rejecting I/O to "
        r"(?:offline|dead) device)",
    ),
    rule(
        "disk_io_error",
        ": exception Emask",
        r"(?P<device>ata\d+(?:\.\d\d)?): (?P<error>exception Emask 0x[0-9a-f]+)",
    ),
    rule(
        "disk_io_error",
        "attempt to access beyond",
        # The device stands in a second line; the task in front since 5.10.
        r"(?:\A(?P<comm>[^\n]{1,64}): )?(?P<error>attempt to access beyond end of device)"
        r"(?:(?:\n|\\n)(?P<device>\S{1,64}): rw=)?",
    ),
    rule(
        "disk_io_error",
        "-error on swap-device",
        r"(?P<error>(?:Read|Write)-error on swap-device) \((?P<about>\d+:\d+):",
    ),
    rule(
        "disk_io_error",
        ": Failing path ",
        r"device-mapper: multipath: (?P<device>\d+:\d+): (?P<error>Failing path \d+:\d+)",
    ),
    rule(
        "disk_io_error",
        "out-of-data-space mode",
        r"device-mapper: thin: (?P<device>\d+:\d+): (?P<error>switching pool to out-of-data-space "
        r"mode)",
    ),
)

_NVME = (
    rule(
        "nvme_timeout",
        "QID ",
        r"\Anvme (?P<device>\S{1,32}): I/O (?:tag )?\d+ .{0,80}?QID \d+ "
        r"(?P<error>timeout, (?:aborting|reset controller|disable controller|completion polled))",
    ),
    rule(
        "nvme_timeout",
        ": controller is down",
        r"nvme (?P<device>\S{1,32}): (?P<error>controller is down; will reset: CSTS=0x[0-9a-f]+)",
    ),
    rule(
        "nvme_timeout",
        "after reset failure",
        r"nvme (?P<device>\S{1,32}): (?P<error>(?:Disabling|Removing) device after reset failure|"
        r"Removing after probe failure)",
    ),
    rule(
        "nvme_timeout",
        "Device not ready; aborting",
        r"nvme (?P<device>\S{1,32}): (?P<error>Device not ready; aborting \w+)",
    ),
    rule(
        "nvme_timeout",
        " path - ",
        r"(?:nvme|block) (?P<device>nvme\w{1,32}): "
        r"(?P<error>no (?:usable|available) path - (?:requeuing|failing) I/O)",
    ),
)

_FILE_SYSTEMS = (
    rule(
        "fs_error",
        "-fs error (device ",
        r"(?P<file_system>EXT[234]|FAT|F2FS)-fs error \(device (?P<device>[^\s)]{1,64})\)"
        r"(?:: (?P<function>\w{1,64}):\d+: (?:inode #\d+: )?(?:block \d+: )?"
        r"(?:comm (?P<comm>[^\n]{1,64}?): )?| in (?P<error>[^\n]{1,200}))?",
    ),
    rule(
        "fs_warning",
        "-fs warning (device ",
        r"(?P<file_system>EXT[234])-fs warning \(device (?P<device>[^\s)]{1,64})\): "
        r"(?P<function>\w{1,64}):\d+: (?:inode #\d+: )?(?:comm (?P<comm>[^\n]{1,64}?): )?"
        r"(?P<error>[^\n]{1,120})",
    ),
    rule(
        "fs_error",
        "FAT-fs (",
        r"(?P<file_system>FAT)-fs \((?P<device>[^\s)]{1,64})\): error, (?P<error>[^\n]{1,120})",
    ),
    rule(
        "fs_error",
        "Aborting journal on device ",
        r"(?P<error>Aborting journal) on device (?P<device>[^\s.]{1,64}?)(?:-\d+)?\.",
        file_system="EXT4",
    ),
    rule(
        "fs_error",
        "XFS (",
        r"(?P<file_system>XFS) \((?P<device>[^\s)]{1,64})\): (?P<error>Metadata (?:CRC error|"
        r"corruption)|[Mm]etadata I/O [Ee]rror|log I/O error|Internal error|Corruption detected)",
    ),
    rule(
        "fs_error",
        "BTRFS",
        r"(?P<file_system>BTRFS)(?:: error| error| critical) \(device (?P<device>[^\s):]{1,64})"
        r"(?:: state \w+)?\)(?::| in) (?P<error>[^\n]{1,120})",
    ),
    rule(
        "fs_readonly",
        "Remounting filesystem read-only",
        r"(?P<file_system>EXT[234]|F2FS)-fs \((?P<device>[^\s)]{1,64})\): "
        r"(?P<error>Remounting filesystem read-only)",
    ),
    rule(
        "fs_readonly",
        "Filesystem has been set read-only",
        r"(?P<file_system>FAT)-fs \((?P<device>[^\s)]{1,64})\): "
        r"(?P<error>Filesystem has been set read-only)",
    ),
    rule(
        "fs_readonly",
        ": forced readonly",
        r"(?P<file_system>BTRFS) info \(device (?P<device>[^\s):]{1,64})(?:: state \w+)?\): "
        r"(?P<error>forced readonly)",
    ),
    rule(
        "fs_readonly",
        "Shutting down filesystem",
        r"(?P<file_system>XFS) \((?P<device>[^\s)]{1,64})\): (?P<error>[^\n]{0,160}?)[. ]{0,3}"
        r"Shutting down filesystem",
    ),
    rule(
        "fs_readonly",
        "Filesystem has been shut down",
        r"(?P<file_system>XFS) \((?P<device>[^\s)]{1,64})\): "
        r"(?P<error>Filesystem has been shut down[^\n]{0,80})",
    ),
    rule(
        "nfs_stalled",
        " not responding, ",
        r"(?P<file_system>nfs|lockd): server (?P<server>\S{1,255}) "
        r"(?P<error>not responding, (?:still trying|timed out))",
        about="{server}",
    ),
    rule(
        "nfs_stalled",
        " has not responded in ",
        r"(?P<file_system>CIFS):? VFS: (?:Server |\\\\)?(?P<server>[^\s\\]{1,255})\S{0,255} "
        r"(?P<error>has not responded in \d+ seconds)",
        about="{server}",
    ),
    rule(
        "nfs_stalled",
        "ceph: ",
        r"(?P<file_system>ceph): (?P<server>mds\d+) (?P<error>hung)\b",
        about="{server}",
    ),
    rule(
        "nfs_recovered",
        ": server ",
        r"(?P<file_system>nfs|lockd): server (?P<server>\S{1,255}) OK",
        about="{server}",
    ),
    rule(
        "raid_degraded",
        "Disk failure on ",
        # The disk failed, not the array.
        r"(?P<error>md/raid\d*:\S{1,64}?: Disk failure) on (?P<device>[^\s,.]{1,64})",
    ),
)

RULES: tuple[MessageRule, ...] = (*_NVME, *_REQUESTS, *_FILE_SYSTEMS)
