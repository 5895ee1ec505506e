// Package plugin is kubectl jobpolicy: it tells people why a Job is in its state, what
// happens next, and what would happen in other circumstances.
//
// A command reads its flags, calls the package that does the work (engine/simulate,
// manifest and others), and prints. Text is for people and may change; -o json and
// -o yaml are for programs.
//
// The flags that choose a cluster are those of kubectl: the ConfigFlags of cli-runtime, without
// --cache-dir, because nothing is cached (package test/documents/kubectl compares them). The package
// does not import client-go's clientset and cli-runtime: they have every API group and kustomize, and
// go run would have to compile most of that.
package plugin
