// Package chart renders the Helm chart and the kustomizations of this repository,
// and lists which kustomization is made of the chart with which values.
//
// It is a module of its own, outside of the workspace, so that what Helm depends
// on reaches neither the products nor the other tools.
package chart
