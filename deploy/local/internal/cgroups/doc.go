// Package cgroups makes the control groups of a cluster, and removes those that
// a cluster left that was killed.
//
// Every cluster has a group named after its state directory, below the group
// [Parent]. The first process of the cluster is in it as long as the cluster
// lives. So a group below Parent that holds no process, in any group below it,
// belongs to nobody any more. Both versions of the interface are served: with
// version 1 there is a tree for each controller.
package cgroups
