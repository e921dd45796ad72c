"""Containers as their runtimes know them: docker, containerd, podman, and the kubelet's pods."""
