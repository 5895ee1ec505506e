// Package nodeimages makes the container images that every cluster with real
// containers has, from programs that are installed on this machine: nothing is
// pulled.
//
// Debian's package database says which files belong to a program and what else
// it needs. The images carry the names that the example manifests use; they hold
// the same commands, not the same files, as the images of those names elsewhere.
package nodeimages
