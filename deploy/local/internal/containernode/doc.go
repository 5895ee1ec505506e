// Package containernode configures the programs of a node that runs containers
// for real: containerd, the kubelet, kube-proxy, CoreDNS and the CNI plugins.
//
// They run in namespaces of their own (package namespaces), so their addresses
// and most of their paths are fixed: no two clusters see each other's.
//
// Weighed against kind, which needs a container engine and downloads its node.
package containernode
