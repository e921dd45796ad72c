#!/bin/bash
# A host with a real containerd and a real dockerd: PID 1 of its own namespaces
# over a throw-away overlay of /. Started by tests/container_daemons.py inside
# `unshare --pid --mount --net --cgroup …`, with the work folder as its first argument;
# the other arguments are folders of this machine that the host must see, wherever they lie.
# It ends, and the host with it, as soon as one of the two daemons has ended.
set -euo pipefail
work=$1
shift
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
# An overlay of / shows no other file system, and /tmp is the host's own.
for folder; do
    mkdir -p "$r$folder"
    mount --bind "$folder" "$r$folder"
    mount -o remount,bind,ro "$r$folder"
done
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
# Wait until a daemon ends, and end with it: PID 1 takes all others along. PID 1 also reaps the
# shims' orphans.
end_with_a_daemon() {
    local code=0 ended name=dockerd
    wait -n -p ended || code=$?
    [ "$ended" != $containerd ] || name=containerd
    echo "$name ended with exit code $code" >&2
    exit 1
}
containerd &
containerd=$!
until [ -S /run/containerd/containerd.sock ]; do
    kill -0 $containerd 2>/dev/null || end_with_a_daemon
    sleep 0.1
done
dockerd --bridge none --iptables=false --ip6tables=false --storage-driver vfs &
end_with_a_daemon
