// Package replay decides the requests of a decision log again, with another engine or
// other settings, and says which answers differ.
package replay
