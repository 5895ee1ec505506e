// Package namespaces keeps a cluster apart from the machine that it runs on.
//
// Process, mount, network, IPC and host name namespaces of its own hold the
// whole cluster: control plane, container runtime, kubelet and containers. Pod
// and service addresses exist nowhere else, no mount is seen outside, and
// several clusters run side by side with the same addresses.
//
// The namespaces live as long as their first process, [Init]. When it ends, the
// kernel kills every other process in them, drops the mounts, and removes the
// network devices and rules. Init dies with the program that started it, so
// even a SIGKILL to that leaves nothing running and nothing mounted.
//
// What the kernel does not remove are control groups and files. The first are
// the business of package cgroups; the second lie in the state directory.
//
// Weighed against vishvananda/netlink, which would replace the program ip and nothing
// else.
package namespaces
