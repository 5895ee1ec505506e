// Package prototext stands in for the real one: only its path matters here.
package prototext
