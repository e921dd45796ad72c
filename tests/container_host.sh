#!/bin/bash
# A host with a real containerd and a real dockerd: PID 1 of its own namespaces
# over a throw-away overlay of /. Started by tests/container_daemons.py with the
# work folder as its argument, inside `unshare --pid --mount --net --cgroup …`.
set -euo pipefail
work=$1
mount --make-rprivate /
mount -t tmpfs -o size=1g work "$work"
mkdir "$work"/{upper,scratch,root}
r=$work/root
mount -t overlay -o lowerdir=/,upperdir="$work/upper",workdir="$work/scratch" overlay "$r"
mount -t proc proc "$r/proc"
mount -t sysfs sys "$r/sys"
mount --rbind /dev "$r/dev"
mount -t tmpfs -o mode=755 run "$r/run"
mount -t tmpfs tmp "$r/tmp"
mount -t tmpfs -o mode=755 cgroups "$r/sys/fs/cgroup"
if [ -e /sys/fs/cgroup/cgroup.controllers ]; then
    umount "$r/sys/fs/cgroup"
    mount -t cgroup2 cgroup2 "$r/sys/fs/cgroup"
else
    for hierarchy in /sys/fs/cgroup/*/cgroup.procs; do
        c=$(basename "$(dirname "$hierarchy")")
        [ ! -L "/sys/fs/cgroup/$c" ] || continue
        case $c in
            unified) kind=cgroup2 options=rw ;;
            systemd) kind=cgroup options=none,name=systemd ;;
            *) kind=cgroup options=$c ;;
        esac
        mkdir "$r/sys/fs/cgroup/$c"
        mount -t $kind -o "$options" cgroup "$r/sys/fs/cgroup/$c"
    done
fi
for state in docker containerd; do
    mkdir -p "$r/var/lib/$state"
    mount -t tmpfs -o mode=710 $state "$r/var/lib/$state"
done
mkdir -p "$r/opt/rootfs/bin" "$r/etc/containerd" "$r/etc/docker" "$r/old"
cp "$(command -v busybox)" "$r/opt/rootfs/bin/busybox"
for tool in sh sleep true false; do ln "$r/opt/rootfs/bin/busybox" "$r/opt/rootfs/bin/$tool"; done
tar -C "$r/opt/rootfs" -cf "$r/opt/rootfs.tar" .
printf 'version = 2\ndisabled_plugins = ["io.containerd.grpc.v1.cri"]\n' > "$r/etc/containerd/config.toml"
echo '{}' > "$r/etc/docker/daemon.json"
hostname containers
ip link set lo up
cd "$r"
pivot_root . old
umount -l /old
cd /
export PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root
containerd &
for _ in $(seq 1200); do [ -S /run/containerd/containerd.sock ] && break; sleep 0.1; done
dockerd --bridge none --iptables=false --ip6tables=false --storage-driver vfs &
# PID 1 reaps the shims' orphans, and takes all with it when it is killed.
while :; do wait -n || true; sleep 0.2; done
