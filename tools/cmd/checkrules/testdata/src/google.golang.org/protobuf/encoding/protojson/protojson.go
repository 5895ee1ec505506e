// Package protojson stands in for the real one: only its path matters here.
package protojson
