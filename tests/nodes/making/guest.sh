#!/bin/bash
# Record the v2 guest with systemd: tests/nodes/making/guest.sh WORK-FOLDER
#
# Debian 13 (its own kernel 6.12, systemd 257, containerd, runc) in QEMU without KVM: a few
# minutes, as root; needs the packages mmdebstrap, qemu-system-x86 and e2fsprogs. Inside,
# guest_inside.py makes what is to be seen and records it; the two files it leaves go
# to tests/nodes. Nothing of the guest is kept.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
work=$1
root=$work/root
mkdir -p "$work"

[ -d "$root" ] || mmdebstrap --mode=root --variant=minbase --aptopt='Apt::Install-Recommends "false"' \
    --include=systemd,systemd-sysv,dbus,udev,python3,linux-image-amd64,initramfs-tools,containerd,runc,busybox-static,kmod,iproute2 \
    trixie "$root" http://deb.debian.org/debian

unit() { printf '%s\n' "${@:2}" > "$root/etc/systemd/system/$1"; }
enable() { systemctl --root="$root" enable "$@"; }
unit looping.service [Unit] StartLimitIntervalSec=0 \
    [Service] 'ExecStart=/bin/sh -c "exit 3"' Restart=always RestartSec=7 \
    [Install] WantedBy=multi-user.target
unit fine.service [Service] 'ExecStart=/bin/sleep infinity' [Install] WantedBy=multi-user.target
# Killed once for its memory, throttled for its CPU time, then quiet.
unit limited.service [Service] MemoryMax=24M CPUQuota=20% OOMPolicy=continue \
    'ExecStart=/bin/sh -c "busybox tail /dev/zero; i=0; while [ $$i -lt 60000 ]; do i=$$((i+1)); done; exec sleep infinity"' \
    [Install] WantedBy=multi-user.target
unit broken.service [Service] Type=oneshot ExecStart=/bin/false [Install] WantedBy=multi-user.target
unit held.service [Unit] Requires=broken.service After=broken.service \
    [Service] 'ExecStart=/bin/sleep infinity' [Install] WantedBy=multi-user.target
unit skipped.service [Unit] ConditionPathExists=/absent \
    [Service] 'ExecStart=/bin/sleep infinity' [Install] WantedBy=multi-user.target
unit by-preset.service [Service] 'ExecStart=/bin/sleep infinity' [Install] WantedBy=multi-user.target
unit record.service [Unit] After=containerd.service limited.service \
    [Service] Type=oneshot 'ExecStart=/bin/sh /opt/record' StandardOutput=journal+console StandardError=journal+console TimeoutStartSec=600 \
    [Install] WantedBy=multi-user.target
mkdir -p "$root/etc/systemd/system-preset" "$root/etc/systemd/network" "$root/opt/rootfs/bin"
printf '%s\n' 'enable by-preset.service' 'disable fine.service' > "$root/etc/systemd/system-preset/10-node.preset"
ln -sf /dev/null "$root/etc/systemd/system/masked.service"
enable looping fine limited broken held skipped record systemd-networkd containerd
systemctl --root="$root" disable by-preset e2scrub_reap 2>/dev/null || true
printf '[Match]\nName=en*\n[Network]\nDHCP=ipv4\n' > "$root/etc/systemd/network/all.network"
cp "$root/bin/busybox" "$root/opt/rootfs/bin/busybox"
for tool in sh sleep head; do ln -f "$root/opt/rootfs/bin/busybox" "$root/opt/rootfs/bin/$tool"; done
cp "$here/guest_inside.py" "$here/../../../tools/record-node" "$root/opt/"
cat > "$root/opt/record" <<'EOF'
sleep 25  # until limited.service is quiet
python3 /opt/guest_inside.py /opt/record-node /opt/recorded.json /opt/truth.json || echo FAILED
cd /opt && tar cf /dev/vdb recorded.json truth.json
sync
systemctl poweroff --force --force
EOF
cp "$root"/boot/vmlinuz-* "$work/kernel"
cp "$root"/boot/initrd.img-* "$work/initrd"
rm -f "$work/disk" "$work/out"
truncate -s 2G "$work/disk"
mke2fs -q -t ext4 -d "$root" "$work/disk"
truncate -s 4M "$work/out"
timeout 900 qemu-system-x86_64 -machine q35 -accel tcg,thread=multi -cpu max -smp 2 -m 1536 \
    -nographic -no-reboot -kernel "$work/kernel" -initrd "$work/initrd" \
    -append 'root=/dev/vda rw console=ttyS0 psi=1 systemd.unified_cgroup_hierarchy=1 systemd.hostname=guest trace_event=cgroup:cgroup_mkdir,cgroup:cgroup_rmdir,cgroup:cgroup_release trace_buf_size=4M' \
    -drive "file=$work/disk,format=raw,if=virtio" -drive "file=$work/out,format=raw,if=virtio" \
    -netdev user,id=a,restrict=on -device virtio-net-pci,netdev=a,romfile= \
    -netdev user,id=b,restrict=on -device e1000e,netdev=b,romfile= < /dev/null > "$work/console"
tar xf "$work/out" -C "$work"
cp "$work/recorded.json" "$here/../guest-systemd-v2.json"
cp "$work/truth.json" "$here/../guest-systemd-v2.truth.json"
