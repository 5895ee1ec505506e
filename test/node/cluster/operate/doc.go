// Package operate lives the life of an installation on a node with real
// containers: images, the Helm chart, certificates. It runs every command of
// docs/operate.md, with Jobs under way, and checks what becomes of each of their
// pods.
package operate
