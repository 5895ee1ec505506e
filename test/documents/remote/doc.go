// Package remote runs docs/remote.md: its commands, in the order of the page, and the programs
// in callers, against an engine over mutual TLS.
package remote
